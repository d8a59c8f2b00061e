package main

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"
)

// life is a version of which every thing is a T. Without create it only reads, and without update nothing changes.
type life[T proto.Message] struct {
	facts  func(T) []any
	create func(ctx context.Context, parent string, n int) (T, error)
	read   func(ctx context.Context, id string) (T, error)
	// update changes a thing that was read.
	update func(ctx context.Context, thing T) (T, error)
	list   func(ctx context.Context, parent string) ([]T, error)
	remove func(ctx context.Context, id string) error
	// body and change are what create and update send, for versions that send the same.
	body   func(parent string, n int) proto.Message
	change func(thing T) proto.Message
}

func (l life[T]) writes() bool { return l.create != nil }

func (l life[T]) told(ctx context.Context, id string) (string, error) {
	thing, err := l.read(ctx, id)
	if err != nil {
		return "", err
	}
	return l.say(thing), nil
}

func (l life[T]) say(thing T) string { return fmt.Sprint(l.facts(thing)...) }

func (l life[T]) ids(ctx context.Context, parent string) ([]string, error) {
	things, err := l.list(ctx, parent)
	ids := []string{}
	for _, thing := range things {
		ids = append(ids, idOf(thing))
	}
	slices.Sort(ids)
	return ids, err
}

func (l life[T]) walk(ctx context.Context, parent string, count int, others []version) error {
	all := append(others, l)
	made, said := []string{}, []string{}
	for n := range count {
		thing, err := l.create(ctx, parent, n)
		if err != nil {
			return fmt.Errorf("create: %w", err)
		}
		if slices.Contains(said, l.say(thing)) {
			return fmt.Errorf("create: another one says %s too", l.say(thing))
		}
		made, said = append(made, idOf(thing)), append(said, l.say(thing))
		if err := alike(ctx, all, idOf(thing), l.say(thing)); err != nil {
			return fmt.Errorf("read: %w", err)
		}
	}
	if l.update != nil {
		if err := l.alter(ctx, made[0], all); err != nil {
			return fmt.Errorf("update: %w", err)
		}
	}
	slices.Sort(made)
	if err := lists(ctx, all, parent, made); err != nil {
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
	return lists(ctx, all, parent, nil)
}

func (l life[T]) alter(ctx context.Context, id string, all []version) error {
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
	return alike(ctx, all, id, l.say(changed))
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
