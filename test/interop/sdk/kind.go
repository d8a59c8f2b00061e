package main

import (
	"context"
	"fmt"

	iam "chainguard.dev/sdk/proto/chainguard/platform/iam/v2"
)

// kind is a kind of thing, as all versions of the API have it.
type kind struct {
	name         string
	v1, v2, beta version
	// makeParent makes a place for things that do not lie in a group.
	makeParent func(ctx context.Context, group *iam.Group) (string, error)
	// single says that a parent holds at most one.
	single bool
}

// version is what the clients of one version can do with a kind of thing.
type version interface {
	// writes is false for a version that only reads them.
	writes() bool
	// walk creates things, reads, changes, lists and deletes them, while other versions look on.
	walk(ctx context.Context, parent string, count int, others []version) error
	// told is what a thing says of itself, in words that are the same in all versions.
	told(ctx context.Context, id string) (string, error)
	ids(ctx context.Context, parent string) ([]string, error)
}

// walk lets each version that can write do so, and all read.
func (k kind) walk(ctx context.Context, a *api, org string) error {
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
		if !turn.writer.writes() {
			continue
		}
		group, err := a.newGroup(ctx, org, fmt.Sprintf("sdk-%s-%s", k.name, turn.name))
		if err != nil {
			return err
		}
		parent := group.Uid
		if k.makeParent != nil {
			if parent, err = k.makeParent(ctx, group); err != nil {
				return err
			}
		}
		if err := turn.writer.walk(ctx, parent, count, turn.others); err != nil {
			return fmt.Errorf("%s: %w", turn.name, err)
		}
	}
	return nil
}
