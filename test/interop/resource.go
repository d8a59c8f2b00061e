package main

import (
	"context"
	"fmt"
	"maps"
	"strings"
)

// resource is what one version of the API says about one kind of thing.
type resource struct {
	service string
	// early says that this is v1: no pages, no Get, and updates that send the whole thing.
	early bool
	// singular and plural are the ends of the names of methods; most services of v1 have none.
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

// String names the service, and also the kind where v1 has several in one.
func (r resource) String() string {
	if r.early && r.singular != "" {
		return r.service + "." + r.singular
	}
	return r.service
}

func (r resource) method(verb string) string {
	if verb == "List" {
		return verb + r.plural
	}
	return verb + r.singular
}

// walk creates things, reads, changes, lists and deletes them.
func (r resource) walk(ctx context.Context, api *client, org string) error {
	group, err := newGroup(ctx, api, org, r.String())
	if err != nil {
		return err
	}
	parent := group
	if r.makeParent != nil {
		if parent, err = r.makeParent(ctx, api, group); err != nil {
			return err
		}
	}
	made := []string{}
	for n := range 5 {
		if n > 0 && r.single {
			break
		}
		id, err := r.create(ctx, api, parent, n)
		if err != nil {
			return fmt.Errorf("create: %w", err)
		}
		made = append(made, id)
	}
	if r.change != nil {
		if err := r.update(ctx, api, made[0]); err != nil {
			return fmt.Errorf("update: %w", err)
		}
	}
	found, err := r.everything(ctx, api, parent)
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	for _, id := range made {
		if !found[id] {
			return fmt.Errorf("list: lacks %s", id)
		}
		if _, err := api.call(ctx, r.service, r.method("Delete"), fields{r.id: id}); err != nil {
			return fmt.Errorf("delete: %w", err)
		}
	}
	if found, err = r.everything(ctx, api, parent); err == nil && len(found) > 0 {
		err = fmt.Errorf("after the deletions there are %d", len(found))
	}
	return err
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
	if r.early {
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
	if !r.early {
		request = fields{r.item: change}
	}
	answer, err := api.call(ctx, r.service, r.method("Update"), request)
	if err != nil {
		return err
	}
	for name, value := range r.change {
		if answer[name] != value {
			return fmt.Errorf("%s is %v", name, answer[name])
		}
	}
	return nil
}

// everything lists what a parent holds: v1 all at once, v2 page by page.
func (r resource) everything(ctx context.Context, api *client, parent string) (map[string]bool, error) {
	request := fields{"uidp": fields{"childrenOf": parent}}
	switch {
	case r.early && (r.single || r.parent == "group"):
		request = fields{"group": parent}
	case r.single:
		request = fields{"uidp": fields{"ids": []string{parent}}}
	}
	if !r.early {
		return r.everyPage(ctx, api, request)
	}
	answer, err := api.call(ctx, r.service, r.method("List"), request)
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	return found, r.note(answer, found)
}

// everyPage walks the pages of a list, and finds everything once and as much as the list says there is.
func (r resource) everyPage(ctx context.Context, api *client, request fields) (map[string]bool, error) {
	found, total := map[string]bool{}, ""
	for page, err := range pages(ctx, api, r.service, r.method("List"), request) {
		if err != nil {
			return nil, err
		}
		if err := r.note(page, found); err != nil {
			return nil, err
		}
		total, _ = page["totalCount"].(string)
	}
	if total != fmt.Sprint(len(found)) {
		return nil, fmt.Errorf("there are %d, and not %s", len(found), total)
	}
	return found, nil
}

// note adds what an answer holds to what was found before.
func (r resource) note(answer fields, found map[string]bool) error {
	items, _ := answer[r.list].([]any)
	for _, item := range items {
		id, _ := item.(fields)[r.id].(string)
		if found[id] {
			return fmt.Errorf("%q is there twice", id)
		}
		found[id] = true
	}
	return nil
}

func newGroup(ctx context.Context, api *client, org, name string) (string, error) {
	request := fields{"parent": org, "group": fields{"name": "interop-" + strings.ToLower(name)}}
	answer, err := api.call(ctx, "iam.v2.GroupsService", "CreateGroup", request)
	if err != nil {
		return "", err
	}
	return answer["uid"].(string), nil
}
