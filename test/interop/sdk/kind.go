package main

import (
	"context"
	"fmt"

	iam "chainguard.dev/sdk/proto/chainguard/platform/iam/v2beta1"
)

// kind is a kind of thing, as both versions of the API have it.
type kind struct {
	name        string
	early, late version
	// makeParent makes a place for things that do not lie in a group.
	makeParent func(ctx context.Context, group *iam.Group) (string, error)
	// single says that a parent holds at most one.
	single bool
}

// version is what the clients of one version can do with a kind of thing.
type version interface {
	// writes is false for a version that only reads them.
	writes() bool
	// walk creates things, reads, changes, lists and deletes them, while another version looks on.
	walk(ctx context.Context, parent string, count int, other version) error
	// told is what a thing says of itself, in words that are the same in all versions.
	told(ctx context.Context, id string) (string, error)
	ids(ctx context.Context, parent string) ([]string, error)
}

// walk lets each version that can write do so, and both read.
func (k kind) walk(ctx context.Context, a *api, org string) error {
	count := 5
	if k.single {
		count = 1
	}
	for _, pair := range []struct {
		name          string
		writer, other version
	}{{"v1", k.early, k.late}, {"v2beta1", k.late, k.early}} {
		if !pair.writer.writes() {
			continue
		}
		group, err := a.newGroup(ctx, org, fmt.Sprintf("sdk-%s-%s", k.name, pair.name))
		if err != nil {
			return err
		}
		parent := group.Uid
		if k.makeParent != nil {
			if parent, err = k.makeParent(ctx, group); err != nil {
				return err
			}
		}
		if err := pair.writer.walk(ctx, parent, count, pair.other); err != nil {
			return fmt.Errorf("%s: %w", pair.name, err)
		}
	}
	return nil
}
