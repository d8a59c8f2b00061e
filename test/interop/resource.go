package main

import (
	"context"
	"fmt"
	"maps"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// resource is what one version of the API says about one kind of thing.
type resource struct {
	service string
	// singular and plural are the ends of the names of v2 methods; v1 has one word for all kinds.
	singular, plural string
	// parent is the field of a create request that names the parent, id the field that names a thing, item the field of
	// the create request that holds it; an empty item means that the request is the thing itself.
	parent, id, item string
	// list is the field of an answer that holds the things.
	list string
	// body is a new one, and change what an update sets; without it there is no update.
	body   func(ctx context.Context, api *client, parent string, n int) (fields, error)
	change fields
	// makeParent makes a place for things that do not lie in a group.
	makeParent func(ctx context.Context, api *client, group string) (string, error)
	// single says that a parent holds at most one.
	single bool
}

func (r resource) String() string { return r.service }

func (r resource) isV1() bool { return r.singular == "" }

func (r resource) method(verb string) string {
	switch {
	case r.isV1():
		return verb
	case verb == "List":
		return verb + r.plural
	default:
		return verb + r.singular
	}
}

// walk creates things, reads, changes, lists and deletes them. It answers false where the server has no such method yet.
func (r resource) walk(ctx context.Context, api *client, org string) (bool, error) {
	group, err := newGroup(ctx, api, org, r.service)
	if err != nil {
		return false, err
	}
	parent := group
	if r.makeParent != nil {
		if parent, err = r.makeParent(ctx, api, group); err != nil {
			return false, err
		}
	}
	made := []string{}
	for n := range 3 {
		if n > 0 && r.single {
			break
		}
		id, err := r.create(ctx, api, parent, n)
		if status.Code(err) == codes.Unimplemented {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("create: %w", err)
		}
		made = append(made, id)
	}
	if r.change != nil {
		if err := r.update(ctx, api, made[0]); err != nil {
			return false, fmt.Errorf("update: %w", err)
		}
	}
	found, err := r.everything(ctx, api, parent)
	if err != nil {
		return false, fmt.Errorf("list: %w", err)
	}
	for _, id := range made {
		if !found[id] {
			return false, fmt.Errorf("list: lacks %s", id)
		}
		if _, err := api.call(ctx, r.service, r.method("Delete"), fields{r.id: id}); err != nil {
			return false, fmt.Errorf("delete: %w", err)
		}
	}
	if found, err = r.everything(ctx, api, parent); err != nil || len(found) > 0 {
		return false, fmt.Errorf("after the deletions there are %d, %w", len(found), err)
	}
	return true, nil
}

func (r resource) create(ctx context.Context, api *client, parent string, n int) (string, error) {
	body, err := r.body(ctx, api, parent, n)
	if err != nil {
		return "", err
	}
	request := fields{r.parent: parent}
	if r.item == "" {
		maps.Copy(request, body)
	} else {
		request[r.item] = body
	}
	answer, err := api.call(ctx, r.service, r.method("Create"), request)
	if err != nil {
		return "", err
	}
	id, ok := answer[r.id].(string)
	if !ok {
		return "", fmt.Errorf("the answer has no %s", r.id)
	}
	if r.isV1() {
		return id, nil
	}
	read, err := api.call(ctx, r.service, r.method("Get"), fields{r.id: id})
	if err != nil {
		return "", err
	}
	if read[r.id] != id {
		return "", fmt.Errorf("get %s answers %v", id, read[r.id])
	}
	return id, nil
}

// update changes one field: v2 by a partial update, v1 by sending the whole thing.
func (r resource) update(ctx context.Context, api *client, id string) error {
	change := maps.Clone(r.change)
	change[r.id] = id
	request := change
	if !r.isV1() {
		request = fields{r.item: change}
	}
	answer, err := api.call(ctx, r.service, r.method("Update"), request)
	if err != nil {
		return err
	}
	if answer["description"] != r.change["description"] {
		return fmt.Errorf("answers %v", answer["description"])
	}
	return nil
}

// everything lists what a parent holds: v1 all at once, v2 page by page as the platform's iterators do.
func (r resource) everything(ctx context.Context, api *client, parent string) (map[string]bool, error) {
	place := fields{"childrenOf": parent}
	if r.single {
		place = fields{"ids": []string{parent}}
	}
	request := fields{"uidp": place}
	if r.isV1() && r.single {
		request = fields{r.id: parent}
	} else if r.isV1() && r.parent == "group" {
		request = fields{"group": parent}
	}
	found := map[string]bool{}
	for pages := 0; pages < 1000; pages++ {
		if !r.isV1() {
			request["pageSize"] = 1
		}
		answer, err := api.call(ctx, r.service, r.method("List"), request)
		if err != nil {
			return nil, err
		}
		items, _ := answer[r.list].([]any)
		for _, item := range items {
			found[item.(fields)[r.id].(string)] = true
		}
		next, _ := answer["nextPageToken"].(string)
		if next == "" {
			return found, nil
		}
		request["pageToken"] = next
	}
	return nil, fmt.Errorf("the pages have no end")
}

func newGroup(ctx context.Context, api *client, org, name string) (string, error) {
	request := fields{"parent": org, "group": fields{"name": "interop " + lower(name)}}
	answer, err := api.call(ctx, "iam.v2.GroupsService", "CreateGroup", request)
	if err != nil {
		return "", err
	}
	return answer["uid"].(string), nil
}
