package main

import (
	"context"
	"fmt"

	iam "chainguard.dev/sdk/proto/chainguard/platform/iam/v2"
)

// kind is a kind of resource in all versions of the API.
type kind struct {
	name         string
	v1, v2, beta version
	// newParent creates the parent of resources whose parent is not a group.
	newParent func(ctx context.Context, group *iam.Group) (string, error)
	// single means that a parent has at most one.
	single bool
}

// version accesses the resources of one kind through one version of the API.
type version interface {
	// canWrite is false for a version that only reads them.
	canWrite() bool
	// testLifecycle creates, updates, lists and deletes resources, and checks that the other versions read the same.
	testLifecycle(ctx context.Context, parent string, count int, others []version) error
	// summary returns the fields of a resource as a text that is the same in all versions.
	summary(ctx context.Context, id string) (string, error)
	ids(ctx context.Context, parent string) ([]string, error)
}

// testLifecycle runs the test once for each version that can write.
func (k kind) testLifecycle(ctx context.Context, a *api, org string) error {
	count := 5
	if k.single {
		count = 1
	}
	for _, turn := range []struct {
		name   string
		writer version
		others []version
	}{
		{"v1", k.v1, []version{k.v2, k.beta}},
		{"v2", k.v2, []version{k.v1, k.beta}},
		{"v2beta1", k.beta, []version{k.v1, k.v2}},
	} {
		if !turn.writer.canWrite() {
			continue
		}
		group, err := a.newGroup(ctx, org, fmt.Sprintf("sdk-%s-%s", k.name, turn.name))
		if err != nil {
			return err
		}
		parent := group.Uid
		if k.newParent != nil {
			if parent, err = k.newParent(ctx, group); err != nil {
				return err
			}
		}
		if err := turn.writer.testLifecycle(ctx, parent, count, turn.others); err != nil {
			return fmt.Errorf("%s: %w", turn.name, err)
		}
	}
	return nil
}
