package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	iam "chainguard.dev/sdk/proto/chainguard/platform/iam/v2beta1"
	common "chainguard.dev/sdk/proto/platform/common/v1"
)

// pageSize is small, so that a few things make several pages for the SDK's iterators.
const pageSize = 2

// kind is a kind of thing, as both versions of the API have it.
type kind struct {
	name        string
	early, late version
	// makeParent makes a place for things that do not lie in a group.
	makeParent func(ctx context.Context, group string) (string, error)
	// single says that a parent holds at most one.
	single bool
}

// version is what the clients of one version can do with a kind of thing.
type version interface {
	// walk creates things, reads, changes, lists and deletes them, while another version looks on.
	walk(ctx context.Context, parent string, count int, other version) error
	// told is what a thing says of itself, in words that are the same in all versions.
	told(ctx context.Context, id string) (string, error)
	ids(ctx context.Context, parent string) ([]string, error)
}

// walk lets each version write, and both read.
func (k kind) walk(ctx context.Context, a *api, org string) error {
	count := 5
	if k.single {
		count = 1
	}
	for _, pair := range []struct {
		name          string
		writer, other version
	}{{"v1", k.early, k.late}, {"v2beta1", k.late, k.early}} {
		parent, err := a.newGroup(ctx, org, fmt.Sprintf("sdk-%s-%s", k.name, pair.name))
		if err != nil {
			return err
		}
		if k.makeParent != nil {
			if parent, err = k.makeParent(ctx, parent); err != nil {
				return err
			}
		}
		if err := pair.writer.walk(ctx, parent, count, pair.other); err != nil {
			return fmt.Errorf("%s: %w", pair.name, err)
		}
	}
	return nil
}

// life is a version of which every thing is a T. Without create, it only reads; without update, nothing changes.
type life[T any] struct {
	id     func(T) string
	facts  func(T) []any
	create func(ctx context.Context, parent string, n int) (T, error)
	read   func(ctx context.Context, id string) (T, error)
	// update changes a thing that was read.
	update func(ctx context.Context, thing T) (T, error)
	list   func(ctx context.Context, parent string) ([]T, error)
	remove func(ctx context.Context, id string) error
}

func (l life[T]) told(ctx context.Context, id string) (string, error) {
	thing, err := l.read(ctx, id)
	if err != nil {
		return "", err
	}
	return l.say(thing), nil
}

func (l life[T]) say(thing T) string { return fmt.Sprintf("%q", l.facts(thing)) }

func (l life[T]) ids(ctx context.Context, parent string) ([]string, error) {
	things, err := l.list(ctx, parent)
	ids := []string{}
	for _, thing := range things {
		ids = append(ids, l.id(thing))
	}
	slices.Sort(ids)
	return ids, err
}

func (l life[T]) walk(ctx context.Context, parent string, count int, other version) error {
	if l.create == nil {
		return nil
	}
	both := []version{l, other}
	made := []string{}
	for n := range count {
		thing, err := l.create(ctx, parent, n)
		if err != nil {
			return fmt.Errorf("create: %w", err)
		}
		made = append(made, l.id(thing))
		if err := alike(ctx, both, l.id(thing), l.say(thing)); err != nil {
			return fmt.Errorf("read: %w", err)
		}
	}
	if l.update != nil {
		if err := l.change(ctx, made[0], both); err != nil {
			return fmt.Errorf("update: %w", err)
		}
	}
	slices.Sort(made)
	if err := lists(ctx, both, parent, made); err != nil {
		return fmt.Errorf("list: %w", err)
	}
	for _, id := range made {
		if err := l.remove(ctx, id); err != nil {
			return fmt.Errorf("delete: %w", err)
		}
		if told, err := l.told(ctx, id); err == nil {
			return fmt.Errorf("delete: it still says %s", told)
		}
	}
	return lists(ctx, both, parent, nil)
}

func (l life[T]) change(ctx context.Context, id string, both []version) error {
	before, err := l.read(ctx, id)
	if err != nil {
		return err
	}
	said := l.say(before)
	changed, err := l.update(ctx, before)
	if err != nil {
		return err
	}
	if l.say(changed) == said {
		return fmt.Errorf("it still says %s", said)
	}
	return alike(ctx, both, id, l.say(changed))
}

func alike(ctx context.Context, versions []version, id, wanted string) error {
	for _, each := range versions {
		told, err := each.told(ctx, id)
		if err != nil {
			return err
		}
		if told != wanted {
			return fmt.Errorf("it says %s, and not %s", told, wanted)
		}
	}
	return nil
}

func lists(ctx context.Context, versions []version, parent string, wanted []string) error {
	for _, each := range versions {
		found, err := each.ids(ctx, parent)
		if err != nil {
			return err
		}
		if !slices.Equal(found, wanted) {
			return fmt.Errorf("there are %q, and not %q", found, wanted)
		}
	}
	return nil
}

// the takes the only thing of a list, which is how v1 reads one.
func the[T any](things []T, err error) (T, error) {
	if err == nil && len(things) != 1 {
		err = fmt.Errorf("there are %d", len(things))
	}
	if err != nil {
		var none T
		return none, err
	}
	return things[0], nil
}

// done drops an answer that says nothing.
func done[T any](_ T, err error) error { return err }

func childrenOf(parent string) *common.UIDPFilter { return &common.UIDPFilter{ChildrenOf: parent} }

func named(n int) string { return fmt.Sprintf("interop-%d", n) }

func (a *api) newGroup(ctx context.Context, parent, name string) (string, error) {
	request := &iam.CreateGroupRequest{Parent: parent, Group: &iam.Group{Name: name}}
	group, err := a.late.IAM().GroupsService().CreateGroup(ctx, request)
	return group.GetUid(), err
}

// viewer is found by its name: the uids of built-in roles are the server's own.
func (a *api) viewer(ctx context.Context) (string, error) {
	request := &iam.ListRolesRequest{Name: "viewer", Uidp: &common.UIDPFilter{InRoot: true}}
	role, err := the(a.late.IAM().ListRolesAll(ctx, request))
	if err != nil {
		return "", errors.Join(errors.New("viewer"), err)
	}
	return role.GetUid(), nil
}
