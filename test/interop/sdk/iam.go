package main

import (
	"context"
	"fmt"

	"chainguard.dev/sdk/proto/capabilities"
	events2 "chainguard.dev/sdk/proto/chainguard/platform/events/v2beta1"
	iam2 "chainguard.dev/sdk/proto/chainguard/platform/iam/v2beta1"
	"chainguard.dev/sdk/proto/chainguard/platform/iter"
	common "chainguard.dev/sdk/proto/platform/common/v1"
	events1 "chainguard.dev/sdk/proto/platform/events/v1"
	iam1 "chainguard.dev/sdk/proto/platform/iam/v1"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
)

const (
	changed = "changed"
	issuer  = "https://issuer.example.com"
	account = "123456789012"
)

// description is the only field that an update of v2beta1 shall touch.
var description = &fieldmaskpb.FieldMask{Paths: []string{"description"}}

func iamKinds(a *api) []kind {
	return []kind{
		groups(a), identities(a), roles(a), bindings(a), providers(a), invites(a), associations(a), subscriptions(a),
	}
}

func groups(a *api) kind {
	c1, c2 := a.early.IAM().Groups(), a.late.IAM()
	early := life[*iam1.Group]{
		id:    (*iam1.Group).GetId,
		facts: func(g *iam1.Group) []any { return []any{g.Name, g.Description} },
		create: func(ctx context.Context, parent string, n int) (*iam1.Group, error) {
			return c1.Create(ctx, &iam1.CreateGroupRequest{Parent: parent, Group: &iam1.Group{Name: named(n)}})
		},
		read: func(ctx context.Context, id string) (*iam1.Group, error) {
			found, err := c1.List(ctx, &iam1.GroupFilter{Id: id})
			return the(found.GetItems(), err)
		},
		update: func(ctx context.Context, g *iam1.Group) (*iam1.Group, error) {
			g.Description = changed
			return c1.Update(ctx, g)
		},
		list: func(ctx context.Context, parent string) ([]*iam1.Group, error) {
			found, err := c1.List(ctx, &iam1.GroupFilter{Uidp: childrenOf(parent)})
			return found.GetItems(), err
		},
		remove: func(ctx context.Context, id string) error {
			return done(c1.Delete(ctx, &iam1.DeleteGroupRequest{Id: id}))
		},
	}
	late := life[*iam2.Group]{
		id:    (*iam2.Group).GetUid,
		facts: func(g *iam2.Group) []any { return []any{g.Name, g.Description} },
		create: func(ctx context.Context, parent string, n int) (*iam2.Group, error) {
			return c2.GroupsService().CreateGroup(ctx, &iam2.CreateGroupRequest{Parent: parent, Group: &iam2.Group{Name: named(n)}})
		},
		read: func(ctx context.Context, uid string) (*iam2.Group, error) {
			return c2.GroupsService().GetGroup(ctx, &iam2.GetGroupRequest{Uid: uid})
		},
		update: func(ctx context.Context, g *iam2.Group) (*iam2.Group, error) {
			g.Description = changed
			return c2.GroupsService().UpdateGroup(ctx, &iam2.UpdateGroupRequest{Group: g, UpdateMask: description})
		},
		list: func(ctx context.Context, parent string) ([]*iam2.Group, error) {
			return iter.All(c2.ListGroupsIter(ctx, &iam2.ListGroupsRequest{Uidp: childrenOf(parent), PageSize: pageSize}))
		},
		remove: func(ctx context.Context, uid string) error {
			return done(c2.GroupsService().DeleteGroup(ctx, &iam2.DeleteGroupRequest{Uid: uid}))
		},
	}
	return kind{name: "groups", early: early, late: late}
}

func identities(a *api) kind {
	c1, c2 := a.early.IAM().Identities(), a.late.IAM()
	early := life[*iam1.Identity]{
		id: (*iam1.Identity).GetId,
		facts: func(i *iam1.Identity) []any {
			return []any{i.Name, i.Description, i.GetClaimMatch().GetIssuer(), i.GetClaimMatch().GetSubject()}
		},
		create: func(ctx context.Context, parent string, n int) (*iam1.Identity, error) {
			login := &iam1.Identity_ClaimMatch{
				Iss: &iam1.Identity_ClaimMatch_Issuer{Issuer: issuer}, Sub: &iam1.Identity_ClaimMatch_Subject{Subject: parent + named(n)},
			}
			identity := &iam1.Identity{Name: named(n), Relationship: &iam1.Identity_ClaimMatch_{ClaimMatch: login}}
			made, err := c1.Create(ctx, &iam1.CreateIdentityRequest{ParentId: parent, Identity: identity})
			if err != nil {
				return nil, err
			}
			return c1.Lookup(ctx, &iam1.LookupRequest{Issuer: issuer, Subject: made.GetClaimMatch().GetSubject()})
		},
		read: func(ctx context.Context, id string) (*iam1.Identity, error) {
			found, err := c1.List(ctx, &iam1.IdentityFilter{Id: id})
			return the(found.GetItems(), err)
		},
		update: func(ctx context.Context, i *iam1.Identity) (*iam1.Identity, error) {
			i.Description = changed
			return c1.Update(ctx, i)
		},
		list: func(ctx context.Context, parent string) ([]*iam1.Identity, error) {
			found, err := c1.List(ctx, &iam1.IdentityFilter{Uidp: childrenOf(parent)})
			return found.GetItems(), err
		},
		remove: func(ctx context.Context, id string) error {
			return done(c1.Delete(ctx, &iam1.DeleteIdentityRequest{Id: id}))
		},
	}
	late := life[*iam2.Identity]{
		id: (*iam2.Identity).GetUid,
		facts: func(i *iam2.Identity) []any {
			return []any{i.Name, i.Description, i.GetClaimMatch().GetIssuer(), i.GetClaimMatch().GetSubject()}
		},
		create: func(ctx context.Context, parent string, n int) (*iam2.Identity, error) {
			login := &iam2.Identity_ClaimMatch{
				Iss: &iam2.Identity_ClaimMatch_Issuer{Issuer: issuer}, Sub: &iam2.Identity_ClaimMatch_Subject{Subject: parent + named(n)},
			}
			identity := &iam2.Identity{Name: named(n), Relationship: &iam2.Identity_ClaimMatch_{ClaimMatch: login}}
			return c2.IdentitiesService().CreateIdentity(ctx, &iam2.CreateIdentityRequest{Parent: parent, Identity: identity})
		},
		read: func(ctx context.Context, uid string) (*iam2.Identity, error) {
			return c2.IdentitiesService().GetIdentity(ctx, &iam2.GetIdentityRequest{Uid: uid})
		},
		update: func(ctx context.Context, i *iam2.Identity) (*iam2.Identity, error) {
			i.Description = changed
			return c2.IdentitiesService().UpdateIdentity(ctx, &iam2.UpdateIdentityRequest{Identity: i, UpdateMask: description})
		},
		list: func(ctx context.Context, parent string) ([]*iam2.Identity, error) {
			return iter.All(c2.ListIdentitiesIter(ctx, &iam2.ListIdentitiesRequest{Uidp: childrenOf(parent), PageSize: pageSize}))
		},
		remove: func(ctx context.Context, uid string) error {
			return done(c2.IdentitiesService().DeleteIdentity(ctx, &iam2.DeleteIdentityRequest{Uid: uid}))
		},
	}
	return kind{name: "identities", early: early, late: late}
}

func roles(a *api) kind {
	c1, c2 := a.early.IAM().Roles(), a.late.IAM()
	may := capabilities.Capability_CAP_IAM_GROUPS_LIST
	dotted, _ := capabilities.Stringify(may)
	early := life[*iam1.Role]{
		id:    (*iam1.Role).GetId,
		facts: func(r *iam1.Role) []any { return []any{r.Name, r.Description, r.Capabilities} },
		create: func(ctx context.Context, parent string, n int) (*iam1.Role, error) {
			role := &iam1.Role{Name: named(n), Capabilities: []string{dotted}}
			return c1.Create(ctx, &iam1.CreateRoleRequest{ParentId: parent, Role: role})
		},
		read: func(ctx context.Context, id string) (*iam1.Role, error) {
			found, err := c1.List(ctx, &iam1.RoleFilter{Id: id})
			return the(found.GetItems(), err)
		},
		update: func(ctx context.Context, r *iam1.Role) (*iam1.Role, error) {
			r.Description = changed
			return c1.Update(ctx, r)
		},
		list: func(ctx context.Context, parent string) ([]*iam1.Role, error) {
			found, err := c1.List(ctx, &iam1.RoleFilter{Uidp: childrenOf(parent)})
			return found.GetItems(), err
		},
		remove: func(ctx context.Context, id string) error {
			return done(c1.Delete(ctx, &iam1.DeleteRoleRequest{Id: id}))
		},
	}
	late := life[*iam2.Role]{
		id: (*iam2.Role).GetUid,
		facts: func(r *iam2.Role) []any {
			names, _ := capabilities.StringifyAll(r.Capabilities)
			return []any{r.Name, r.Description, names}
		},
		create: func(ctx context.Context, parent string, n int) (*iam2.Role, error) {
			role := &iam2.Role{Name: named(n), Capabilities: []capabilities.Capability{may}}
			return c2.RolesService().CreateRole(ctx, &iam2.CreateRoleRequest{Parent: parent, Role: role})
		},
		read: func(ctx context.Context, uid string) (*iam2.Role, error) {
			return c2.RolesService().GetRole(ctx, &iam2.GetRoleRequest{Uid: uid})
		},
		update: func(ctx context.Context, r *iam2.Role) (*iam2.Role, error) {
			r.Description = changed
			return c2.RolesService().UpdateRole(ctx, &iam2.UpdateRoleRequest{Role: r, UpdateMask: description})
		},
		list: func(ctx context.Context, parent string) ([]*iam2.Role, error) {
			return iter.All(c2.ListRolesIter(ctx, &iam2.ListRolesRequest{Uidp: childrenOf(parent), PageSize: pageSize}))
		},
		remove: func(ctx context.Context, uid string) error {
			return done(c2.RolesService().DeleteRole(ctx, &iam2.DeleteRoleRequest{Uid: uid}))
		},
	}
	return kind{name: "roles", early: early, late: late}
}
