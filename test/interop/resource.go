package main

import (
	"context"
	"fmt"
	"maps"
	"strings"
)

// resource describes how one version of the API handles one kind of resource.
type resource struct {
	service string
	// isV1 selects the conventions of v1: lists without pages, no Get, and updates that send the whole resource.
	isV1 bool
	// singular and plural are the suffixes of method names. Most services of v1 have none.
	singular, plural string
	// parent is the field of a create request that has the uid of the parent, id the field that has the uid of a resource,
	// item the field of a create request that has the resource. If item is empty, the request is the resource.
	parent, id, item string
	// list is the field of a list response that has the resources.
	list string
	// body builds the n-th new resource. change is what an update sets; nil means that the version has no update.
	body   func(ctx context.Context, api *client, parent string, n int) (fields, error)
	change fields
	// newParent creates the parent of resources whose parent is not a group.
	newParent func(ctx context.Context, api *client, group string) (string, error)
	// single means that a parent has at most one.
	single bool
}

// String returns the service, and for a service of v1 with several kinds also the kind.
func (r resource) String() string {
	if r.isV1 && r.singular != "" {
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

// testLifecycle creates, reads, updates, lists and deletes resources.
func (r resource) testLifecycle(ctx context.Context, api *client, org string) error {
	group, err := newGroup(ctx, api, org, r.String())
	if err != nil {
		return err
	}
	parent := group
	if r.newParent != nil {
		if parent, err = r.newParent(ctx, api, group); err != nil {
			return err
		}
	}
	created := []string{}
	for n := range 5 {
		if n > 0 && r.single {
			break
		}
		id, err := r.create(ctx, api, parent, n)
		if err != nil {
			return fmt.Errorf("create: %w", err)
		}
		created = append(created, id)
	}
	if r.change != nil {
		if err := r.update(ctx, api, created[0]); err != nil {
			return fmt.Errorf("update: %w", err)
		}
	}
	found, err := r.listIDs(ctx, api, parent)
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	for _, id := range created {
		if !found[id] {
			return fmt.Errorf("list: %s is missing", id)
		}
		if _, err := api.call(ctx, r.service, r.method("Delete"), fields{r.id: id}); err != nil {
			return fmt.Errorf("delete: %w", err)
		}
	}
	if found, err = r.listIDs(ctx, api, parent); err == nil && len(found) > 0 {
		err = fmt.Errorf("list: %d resources are left after the deletes", len(found))
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
	response, err := api.call(ctx, r.service, r.method("Create"), request)
	if err != nil {
		return "", err
	}
	id, ok := response[r.id].(string)
	if !ok {
		return "", fmt.Errorf("the response has no %s", r.id)
	}
	if r.isV1 {
		return id, nil
	}
	read, err := api.call(ctx, r.service, r.method("Get"), fields{r.id: id})
	if err != nil {
		return "", err
	}
	if read[r.id] != id {
		return "", fmt.Errorf("get %s returned %v", id, read[r.id])
	}
	return id, nil
}

// update sends r.change: as a partial update in v2, as the whole resource in v1.
func (r resource) update(ctx context.Context, api *client, id string) error {
	change := maps.Clone(r.change)
	change[r.id] = id
	request := change
	if !r.isV1 {
		request = fields{r.item: change}
	}
	response, err := api.call(ctx, r.service, r.method("Update"), request)
	if err != nil {
		return err
	}
	for name, value := range r.change {
		if response[name] != value {
			return fmt.Errorf("%s is %v, not %v", name, response[name], value)
		}
	}
	return nil
}

// listIDs lists the children of a parent: v1 in one response, v2 page by page.
func (r resource) listIDs(ctx context.Context, api *client, parent string) (map[string]bool, error) {
	request := fields{"uidp": fields{"childrenOf": parent}}
	switch {
	case r.isV1 && (r.single || r.parent == "group"):
		request = fields{"group": parent}
	case r.single:
		request = fields{"uidp": fields{"ids": []string{parent}}}
	}
	if !r.isV1 {
		return r.listAllPages(ctx, api, request)
	}
	response, err := api.call(ctx, r.service, r.method("List"), request)
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	return found, r.addIDs(response, found)
}

// listAllPages reads all pages of a list. It checks that no resource is listed twice and that totalCount is right.
func (r resource) listAllPages(ctx context.Context, api *client, request fields) (map[string]bool, error) {
	found, total := map[string]bool{}, ""
	for page, err := range pages(ctx, api, r.service, r.method("List"), request) {
		if err != nil {
			return nil, err
		}
		if err := r.addIDs(page, found); err != nil {
			return nil, err
		}
		total, _ = page["totalCount"].(string)
	}
	if total != fmt.Sprint(len(found)) {
		return nil, fmt.Errorf("found %d resources, totalCount is %s", len(found), total)
	}
	return found, nil
}

// addIDs adds the ids of a list response to found.
func (r resource) addIDs(response fields, found map[string]bool) error {
	items, _ := response[r.list].([]any)
	for _, item := range items {
		id, _ := item.(fields)[r.id].(string)
		if found[id] {
			return fmt.Errorf("%q is listed twice", id)
		}
		found[id] = true
	}
	return nil
}

func newGroup(ctx context.Context, api *client, org, name string) (string, error) {
	request := fields{"parent": org, "group": fields{"name": "interop-" + strings.ToLower(name)}}
	response, err := api.call(ctx, "iam.v2.GroupsService", "CreateGroup", request)
	if err != nil {
		return "", err
	}
	return response["uid"].(string), nil
}
