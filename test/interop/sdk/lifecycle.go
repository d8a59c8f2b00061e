package main

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"
)

// versionClient accesses the resources of one kind through one version, as messages of type T. create is nil if the
// version only reads them, update if it cannot update them.
type versionClient[T proto.Message] struct {
	// fields returns the values that all versions have, in the same order.
	fields func(T) []any
	create func(ctx context.Context, parent string, n int) (T, error)
	read   func(ctx context.Context, id string) (T, error)
	// update changes a resource that was read.
	update func(ctx context.Context, resource T) (T, error)
	list   func(ctx context.Context, parent string) ([]T, error)
	remove func(ctx context.Context, id string) error
	// createRequest and updateRequest build the requests of create and update. v2beta1 sends the same as v2.
	createRequest func(parent string, n int) proto.Message
	updateRequest func(resource T) proto.Message
}

func (c versionClient[T]) canWrite() bool { return c.create != nil }

func (c versionClient[T]) summary(ctx context.Context, id string) (string, error) {
	resource, err := c.read(ctx, id)
	if err != nil {
		return "", err
	}
	return c.summarize(resource), nil
}

func (c versionClient[T]) summarize(resource T) string { return fmt.Sprint(c.fields(resource)...) }

func (c versionClient[T]) ids(ctx context.Context, parent string) ([]string, error) {
	resources, err := c.list(ctx, parent)
	ids := []string{}
	for _, resource := range resources {
		ids = append(ids, idOf(resource))
	}
	slices.Sort(ids)
	return ids, err
}

func (c versionClient[T]) testLifecycle(ctx context.Context, parent string, count int, others []version) error {
	versions := append(others, c)
	ids, summaries := []string{}, []string{}
	for n := range count {
		resource, err := c.create(ctx, parent, n)
		if err != nil {
			return fmt.Errorf("create: %w", err)
		}
		id, summary := idOf(resource), c.summarize(resource)
		if slices.Contains(summaries, summary) {
			return fmt.Errorf("create: two resources have the same fields: %s", summary)
		}
		ids, summaries = append(ids, id), append(summaries, summary)
		if err := checkSummaries(ctx, versions, id, summary); err != nil {
			return fmt.Errorf("read: %w", err)
		}
	}
	if c.update != nil {
		if err := c.testUpdate(ctx, ids[0], versions); err != nil {
			return fmt.Errorf("update: %w", err)
		}
	}
	slices.Sort(ids)
	if err := checkLists(ctx, versions, parent, ids); err != nil {
		return fmt.Errorf("list: %w", err)
	}
	for _, id := range ids {
		if err := c.remove(ctx, id); err != nil {
			return fmt.Errorf("delete: %w", err)
		}
		if summary, err := c.summary(ctx, id); err == nil {
			return fmt.Errorf("delete: the resource can still be read: %s", summary)
		}
	}
	return checkLists(ctx, versions, parent, nil)
}

func (c versionClient[T]) testUpdate(ctx context.Context, id string, versions []version) error {
	resource, err := c.read(ctx, id)
	if err != nil {
		return err
	}
	// update modifies the resource that it is given.
	before := c.summarize(resource)
	updated, err := c.update(ctx, resource)
	if err != nil {
		return err
	}
	after := c.summarize(updated)
	if after == before {
		return fmt.Errorf("the fields did not change: %s", before)
	}
	return checkSummaries(ctx, versions, id, after)
}

func checkSummaries(ctx context.Context, versions []version, id, want string) error {
	for _, each := range versions {
		got, err := each.summary(ctx, id)
		if err != nil {
			return err
		}
		if got != want {
			return fmt.Errorf("got %s, want %s", got, want)
		}
	}
	return nil
}

func checkLists(ctx context.Context, versions []version, parent string, want []string) error {
	for _, each := range versions {
		got, err := each.ids(ctx, parent)
		if err != nil {
			return err
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("got %q, want %q", got, want)
		}
	}
	return nil
}
