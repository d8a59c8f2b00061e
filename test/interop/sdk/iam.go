package main

import (
	"context"
	"fmt"
	"iter"
	"time"

	"chainguard.dev/sdk/proto/capabilities"
	iam2 "chainguard.dev/sdk/proto/chainguard/platform/iam/v2"
	common "chainguard.dev/sdk/proto/platform/common/v1"
	iam1 "chainguard.dev/sdk/proto/platform/iam/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
)

const (
	newDescription = "another description"
	issuer         = "https://issuer.example.com"
)

// onlyDescription is the update mask of updates through v2.
var onlyDescription = &fieldmaskpb.FieldMask{Paths: []string{"description"}}

func nameOf(n int) string { return fmt.Sprintf("interop-%d", n) }

func iamKinds(a *api) []kind {
	return []kind{groups(a), identities(a), roles(a), bindings(a), providers(a), mappings(a), invites(a), associations(a)}
}

func groups(a *api) kind {
	c1, c2, cb := a.v1.IAM().Groups(), a.v2.IAM().GroupsService(), a.beta.IAM().GroupsService()
	v1 := v1Reader(c1.List, func(g *iam1.Group) []any { return []any{g.Name, g.Description} })
	v1 = withWrites(v1, c1.Create, func(parent string, n int) *iam1.CreateGroupRequest {
		return &iam1.CreateGroupRequest{Parent: parent, Group: &iam1.Group{Name: nameOf(n)}}
	}, c1.Delete)
	v1 = withUpdate(v1, c1.Update, func(g *iam1.Group) *iam1.Group {
		g.Description = newDescription
		return g
	})
	v2 := v2Reader(c2.GetGroup, a.v2.IAM().ListGroupsIter, func(g *iam2.Group) []any { return []any{g.Name, g.Description} })
	v2 = withWrites(v2, c2.CreateGroup, func(parent string, n int) *iam2.CreateGroupRequest {
		return &iam2.CreateGroupRequest{Parent: parent, Group: &iam2.Group{Name: nameOf(n)}}
	}, c2.DeleteGroup)
	v2 = withUpdate(v2, c2.UpdateGroup, func(g *iam2.Group) *iam2.UpdateGroupRequest {
		g.Description = newDescription
		return &iam2.UpdateGroupRequest{Group: g, UpdateMask: onlyDescription}
	})
	beta := v2beta1Reader(v2, cb.GetGroup, a.beta.IAM().ListGroupsIter)
	beta = withV2beta1Writes(v2, beta, cb.CreateGroup, cb.DeleteGroup)
	beta = withV2beta1Update(v2, beta, cb.UpdateGroup)
	return kind{name: "groups", v1: v1, v2: v2, beta: beta}
}

func identities(a *api) kind {
	c1, c2, cb := a.v1.IAM().Identities(), a.v2.IAM().IdentitiesService(), a.beta.IAM().IdentitiesService()
	v1 := v1Reader(c1.List, func(i *iam1.Identity) []any {
		return []any{i.Name, i.Description, i.GetClaimMatch().GetIssuer(), i.GetClaimMatch().GetSubject()}
	})
	v1 = withWrites(v1, c1.Create, func(parent string, n int) *iam1.CreateIdentityRequest {
		login := &iam1.Identity_ClaimMatch{
			Iss: &iam1.Identity_ClaimMatch_Issuer{Issuer: issuer},
			Sub: &iam1.Identity_ClaimMatch_Subject{Subject: parent + nameOf(n)},
		}
		identity := &iam1.Identity{Name: nameOf(n), Relationship: &iam1.Identity_ClaimMatch_{ClaimMatch: login}}
		return &iam1.CreateIdentityRequest{ParentId: parent, Identity: identity}
	}, c1.Delete)
	v1 = withUpdate(v1, c1.Update, func(i *iam1.Identity) *iam1.Identity {
		i.Description = newDescription
		return i
	})
	v2 := v2Reader(c2.GetIdentity, a.v2.IAM().ListIdentitiesIter, func(i *iam2.Identity) []any {
		return []any{i.Name, i.Description, i.GetClaimMatch().GetIssuer(), i.GetClaimMatch().GetSubject()}
	})
	v2 = withWrites(v2, c2.CreateIdentity, func(parent string, n int) *iam2.CreateIdentityRequest {
		login := &iam2.Identity_ClaimMatch{
			Iss: &iam2.Identity_ClaimMatch_Issuer{Issuer: issuer},
			Sub: &iam2.Identity_ClaimMatch_Subject{Subject: parent + nameOf(n)},
		}
		identity := &iam2.Identity{Name: nameOf(n), Relationship: &iam2.Identity_ClaimMatch_{ClaimMatch: login}}
		return &iam2.CreateIdentityRequest{Parent: parent, Identity: identity}
	}, c2.DeleteIdentity)
	v2 = withUpdate(v2, c2.UpdateIdentity, func(i *iam2.Identity) *iam2.UpdateIdentityRequest {
		i.Description = newDescription
		return &iam2.UpdateIdentityRequest{Identity: i, UpdateMask: onlyDescription}
	})
	beta := v2beta1Reader(v2, cb.GetIdentity, a.beta.IAM().ListIdentitiesIter)
	beta = withV2beta1Writes(v2, beta, cb.CreateIdentity, cb.DeleteIdentity)
	beta = withV2beta1Update(v2, beta, cb.UpdateIdentity)
	return kind{name: "identities", v1: v1, v2: v2, beta: beta}
}

func roles(a *api) kind {
	c1, c2, cb := a.v1.IAM().Roles(), a.v2.IAM().RolesService(), a.beta.IAM().RolesService()
	v1 := v1Reader(c1.List, func(r *iam1.Role) []any { return []any{r.Name, r.Description, r.Capabilities} })
	v1 = withWrites(v1, c1.Create, func(parent string, n int) *iam1.CreateRoleRequest {
		role := &iam1.Role{Name: nameOf(n), Capabilities: []string{"groups.list"}}
		return &iam1.CreateRoleRequest{ParentId: parent, Role: role}
	}, c1.Delete)
	v1 = withUpdate(v1, c1.Update, func(r *iam1.Role) *iam1.Role {
		r.Description = newDescription
		return r
	})
	v2 := v2Reader(c2.GetRole, a.v2.IAM().ListRolesIter, func(r *iam2.Role) []any {
		dotted, _ := capabilities.StringifyAll(r.Capabilities)
		return []any{r.Name, r.Description, dotted}
	})
	v2 = withWrites(v2, c2.CreateRole, func(parent string, n int) *iam2.CreateRoleRequest {
		role := &iam2.Role{Name: nameOf(n), Capabilities: []capabilities.Capability{capabilities.Capability_CAP_IAM_GROUPS_LIST}}
		return &iam2.CreateRoleRequest{Parent: parent, Role: role}
	}, c2.DeleteRole)
	v2 = withUpdate(v2, c2.UpdateRole, func(r *iam2.Role) *iam2.UpdateRoleRequest {
		r.Description = newDescription
		return &iam2.UpdateRoleRequest{Role: r, UpdateMask: onlyDescription}
	})
	beta := v2beta1Reader(v2, cb.GetRole, a.beta.IAM().ListRolesIter)
	beta = withV2beta1Writes(v2, beta, cb.CreateRole, cb.DeleteRole)
	beta = withV2beta1Update(v2, beta, cb.UpdateRole)
	return kind{name: "roles", v1: v1, v2: v2, beta: beta}
}

// bindings binds one identity to several roles.
func bindings(a *api) kind {
	c1, c2, cb := a.v1.IAM().RoleBindings(), a.v2.IAM().RoleBindingsService(), a.beta.IAM().RoleBindingsService()
	// v1 lists another message than it creates. This converts the created one.
	toListed := func(b *iam1.RoleBinding, err error) (*iam1.RoleBindingList_Binding, error) {
		role := &iam1.Role{Id: b.GetRole()}
		return &iam1.RoleBindingList_Binding{Id: b.GetId(), Identity: b.GetIdentity(), Role: role}, err
	}
	create := func(ctx context.Context, in *iam1.CreateRoleBindingRequest, opts ...grpc.CallOption) (*iam1.RoleBindingList_Binding, error) {
		return toListed(c1.Create(ctx, in, opts...))
	}
	update := func(ctx context.Context, in *iam1.RoleBinding, opts ...grpc.CallOption) (*iam1.RoleBindingList_Binding, error) {
		return toListed(c1.Update(ctx, in, opts...))
	}
	v1 := v1Reader(c1.List, func(b *iam1.RoleBindingList_Binding) []any { return []any{b.Identity, b.GetRole().GetId()} })
	v1 = withWrites(v1, create, func(parent string, n int) *iam1.CreateRoleBindingRequest {
		binding := &iam1.RoleBinding{Identity: a.identity, Role: a.roles[n]}
		return &iam1.CreateRoleBindingRequest{Parent: parent, RoleBinding: binding}
	}, c1.Delete)
	v1 = withUpdate(v1, update, func(b *iam1.RoleBindingList_Binding) *iam1.RoleBinding {
		return &iam1.RoleBinding{Id: b.Id, Identity: b.Identity, Role: a.lastRole()}
	})
	v2 := v2Reader(c2.GetRoleBinding, a.v2.IAM().ListRoleBindingsIter, func(b *iam2.RoleBinding) []any {
		return []any{b.GetIdentity().GetUid(), b.GetRole().GetUid()}
	})
	v2 = withWrites(v2, c2.CreateRoleBinding, func(parent string, n int) *iam2.CreateRoleBindingRequest {
		binding := &iam2.RoleBinding{IdentityUid: a.identity, RoleUid: a.roles[n]}
		return &iam2.CreateRoleBindingRequest{Parent: parent, RoleBinding: binding}
	}, c2.DeleteRoleBinding)
	v2 = withUpdate(v2, c2.UpdateRoleBinding, func(b *iam2.RoleBinding) *iam2.UpdateRoleBindingRequest {
		return &iam2.UpdateRoleBindingRequest{RoleBinding: &iam2.RoleBinding{Uid: b.Uid, RoleUid: a.lastRole()}}
	})
	beta := v2beta1Reader(v2, cb.GetRoleBinding, a.beta.IAM().ListRoleBindingsIter)
	beta = withV2beta1Writes(v2, beta, cb.CreateRoleBinding, cb.DeleteRoleBinding)
	beta = withV2beta1Update(v2, beta, cb.UpdateRoleBinding)
	return kind{name: "role-bindings", v1: v1, v2: v2, beta: beta}
}

func providers(a *api) kind {
	c1, c2, cb := a.v1.IAM().IdentityProviders(), a.v2.IAM().IdentityProvidersService(), a.beta.IAM().IdentityProvidersService()
	const client, secret = "interop", "interop-secret"
	oidc1 := &iam1.IdentityProvider_Oidc{Oidc: &iam1.IdentityProvider_OIDC{Issuer: issuer, ClientId: client, ClientSecret: secret}}
	oidc2 := &iam2.IdentityProvider_Oidc{Oidc: &iam2.IdentityProvider_OIDC{Issuer: issuer, ClientId: client, ClientSecret: secret}}
	v1 := v1Reader(c1.List, func(p *iam1.IdentityProvider) []any {
		return []any{p.Name, p.Description, p.DefaultRole, p.GetOidc().GetIssuer(), p.GetOidc().GetClientId()}
	})
	v1 = withWrites(v1, c1.Create, func(parent string, n int) *iam1.CreateIdentityProviderRequest {
		provider := &iam1.IdentityProvider{Name: nameOf(n), DefaultRole: a.lastRole(), Configuration: oidc1}
		return &iam1.CreateIdentityProviderRequest{ParentId: parent, IdentityProvider: provider}
	}, c1.Delete)
	v1 = withUpdate(v1, c1.Update, func(p *iam1.IdentityProvider) *iam1.IdentityProvider {
		// An update of v1 replaces the whole resource. Reads do not return the secret, so it is sent again.
		p.Description, p.Configuration = newDescription, oidc1
		return p
	})
	v2 := v2Reader(c2.GetIdentityProvider, a.v2.IAM().ListIdentityProvidersIter, func(p *iam2.IdentityProvider) []any {
		return []any{p.Name, p.Description, p.DefaultRole, p.GetOidc().GetIssuer(), p.GetOidc().GetClientId()}
	})
	v2 = withWrites(v2, c2.CreateIdentityProvider, func(parent string, n int) *iam2.CreateIdentityProviderRequest {
		provider := &iam2.IdentityProvider{Name: nameOf(n), DefaultRole: a.lastRole(), Configuration: oidc2}
		return &iam2.CreateIdentityProviderRequest{Parent: parent, IdentityProvider: provider}
	}, c2.DeleteIdentityProvider)
	v2 = withUpdate(v2, c2.UpdateIdentityProvider, func(p *iam2.IdentityProvider) *iam2.UpdateIdentityProviderRequest {
		p.Description = newDescription
		return &iam2.UpdateIdentityProviderRequest{IdentityProvider: p, UpdateMask: onlyDescription}
	})
	beta := v2beta1Reader(v2, cb.GetIdentityProvider, a.beta.IAM().ListIdentityProvidersIter)
	beta = withV2beta1Writes(v2, beta, cb.CreateIdentityProvider, cb.DeleteIdentityProvider)
	beta = withV2beta1Update(v2, beta, cb.UpdateIdentityProvider)
	return kind{name: "identity-providers", v1: v1, v2: v2, beta: beta, newParent: a.newOrganization}
}

// invites cannot be updated.
func invites(a *api) kind {
	c1, c2, cb := a.v1.IAM().GroupInvites(), a.v2.IAM().GroupInvitesService(), a.beta.IAM().GroupInvitesService()
	ttl := durationpb.New(time.Hour)
	// Create of v1 returns another message than List, with the code.
	create := func(ctx context.Context, in *iam1.GroupInviteRequest, opts ...grpc.CallOption) (*iam1.StoredGroupInvite, error) {
		created, err := c1.Create(ctx, in, opts...)
		if err == nil && created.Code == "" {
			err = fmt.Errorf("%s has no code", created.Id)
		}
		stored := &iam1.StoredGroupInvite{Id: created.GetId(), KeyId: created.GetKeyId(), Expiration: created.GetExpiration()}
		stored.Role, stored.Email, stored.SingleUse = created.GetRole(), in.Email, in.SingleUse
		return stored, err
	}
	v1 := v1Reader(c1.List, func(i *iam1.StoredGroupInvite) []any {
		return []any{i.KeyId, i.GetRole().GetId(), i.Email, i.SingleUse, i.Expiration.AsTime()}
	})
	v1 = withWrites(v1, create, func(parent string, n int) *iam1.GroupInviteRequest {
		return &iam1.GroupInviteRequest{Group: parent, Role: a.lastRole(), Ttl: ttl, Email: nameOf(n) + "@example.com", SingleUse: true}
	}, c1.Delete)
	v2 := v2Reader(c2.GetGroupInvite, a.v2.IAM().ListGroupInvitesIter, func(i *iam2.GroupInvite) []any {
		return []any{i.KeyId, i.GetRole().GetUid(), i.Email, i.SingleUse, i.ExpirationTime.AsTime()}
	})
	v2 = withWrites(v2, c2.CreateGroupInvite, func(parent string, n int) *iam2.CreateGroupInviteRequest {
		invite := &iam2.GroupInvite{RoleUid: a.lastRole(), Ttl: ttl, Email: nameOf(n) + "@example.com", SingleUse: true}
		return &iam2.CreateGroupInviteRequest{Parent: parent, GroupInvite: invite}
	}, c2.DeleteGroupInvite)
	beta := v2beta1Reader(v2, cb.GetGroupInvite, a.beta.IAM().ListGroupInvitesIter)
	beta = withV2beta1Writes(v2, beta, cb.CreateGroupInvite, cb.DeleteGroupInvite)
	return kind{name: "group-invites", v1: v1, v2: v2, beta: beta}
}

func associations(a *api) kind {
	c1, c2, cb := a.v1.IAM().AccountAssociations(), a.v2.IAM().AccountAssociationsService(), a.beta.IAM().AccountAssociationsService()
	const account = "123456789012"
	v1 := v1Reader(c1.List, func(x *iam1.AccountAssociations) []any {
		return []any{x.Name, x.Description, x.GetAmazon().GetAccount()}
	})
	v1 = withWrites(v1, c1.Create, func(parent string, n int) *iam1.AccountAssociations {
		return &iam1.AccountAssociations{Group: parent, Name: nameOf(n), Amazon: &iam1.AccountAssociations_Amazon{Account: account}}
	}, c1.Delete)
	v1 = withUpdate(v1, c1.Update, func(x *iam1.AccountAssociations) *iam1.AccountAssociations {
		x.Description = newDescription
		return x
	})
	v2 := v2Reader(c2.GetAccountAssociation, byGroup(a.v2.IAM().ListAccountAssociationsIter), func(x *iam2.AccountAssociation) []any {
		return []any{x.Name, x.Description, x.GetAmazon().GetAccount()}
	})
	v2 = withWrites(v2, c2.CreateAccountAssociation, func(parent string, n int) *iam2.CreateAccountAssociationRequest {
		association := &iam2.AccountAssociation{Name: nameOf(n), Amazon: &iam2.AccountAssociation_Amazon{Account: account}}
		return &iam2.CreateAccountAssociationRequest{Parent: parent, AccountAssociation: association}
	}, c2.DeleteAccountAssociation)
	v2 = withUpdate(v2, c2.UpdateAccountAssociation, func(x *iam2.AccountAssociation) *iam2.UpdateAccountAssociationRequest {
		x.Description = newDescription
		return &iam2.UpdateAccountAssociationRequest{AccountAssociation: x, UpdateMask: onlyDescription}
	})
	beta := v2beta1Reader(v2, cb.GetAccountAssociation, byGroup(a.beta.IAM().ListAccountAssociationsIter))
	beta = withV2beta1Writes(v2, beta, cb.CreateAccountAssociation, cb.DeleteAccountAssociation)
	beta = withV2beta1Update(v2, beta, cb.UpdateAccountAssociation)
	return kind{name: "account-associations", v1: v1, v2: v2, beta: beta, single: true}
}

// byGroup lists resources by uid instead of by parent. The uid of an account association is that of its group, so it is
// not a child of the group.
func byGroup[L interface{ GetUidp() *common.UIDPFilter }, T any](list func(context.Context, L) iter.Seq2[T, error]) func(context.Context, L) iter.Seq2[T, error] {
	return func(ctx context.Context, request L) iter.Seq2[T, error] {
		filter := request.GetUidp()
		filter.Ids, filter.ChildrenOf = []string{filter.ChildrenOf}, ""
		return list(ctx, request)
	}
}
