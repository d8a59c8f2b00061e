package main

import (
	"context"
	"strings"

	iam2 "chainguard.dev/sdk/proto/chainguard/platform/iam/v2"
	iam1 "chainguard.dev/sdk/proto/platform/iam/v1"
)

// mappings are children of an identity provider and cannot be updated.
func mappings(a *api) kind {
	c1, c2, cb := a.v1.IAM().ExternalGroupRoleMappings(), a.v2.IAM().ExternalGroupRoleMappingsService(), a.beta.IAM().ExternalGroupRoleMappingsService()
	v1 := v1Reader(c1.List, func(m *iam1.ExternalGroupRoleMapping) []any {
		return []any{m.IdentityProviderUidp, m.ExternalGroupId, m.RoleUidp, m.Scope}
	})
	// The list of v1 has no filter by id, but v1 has a Get method.
	v1.read = func(ctx context.Context, id string) (*iam1.ExternalGroupRoleMapping, error) {
		return c1.Get(ctx, &iam1.GetExternalGroupRoleMappingRequest{Uid: id})
	}
	v1 = withWrites(v1, c1.Create, func(parent string, n int) *iam1.CreateExternalGroupRoleMappingRequest {
		mapping := &iam1.ExternalGroupRoleMapping{ExternalGroupId: nameOf(n), RoleUidp: a.lastRole()}
		return &iam1.CreateExternalGroupRoleMappingRequest{ParentId: parent, Mapping: mapping}
	}, c1.Delete)
	v2 := v2Reader(c2.GetExternalGroupRoleMapping, a.v2.IAM().ListExternalGroupRoleMappingsIter, func(m *iam2.ExternalGroupRoleMapping) []any {
		return []any{m.IdentityProviderUid, m.ExternalGroupId, m.RoleUid, m.Scope}
	})
	v2 = withWrites(v2, c2.CreateExternalGroupRoleMapping, func(parent string, n int) *iam2.CreateExternalGroupRoleMappingRequest {
		mapping := &iam2.ExternalGroupRoleMapping{ExternalGroupId: nameOf(n), RoleUid: a.lastRole()}
		return &iam2.CreateExternalGroupRoleMappingRequest{Parent: parent, ExternalGroupRoleMapping: mapping}
	}, c2.DeleteExternalGroupRoleMapping)
	beta := v2beta1Reader(v2, cb.GetExternalGroupRoleMapping, a.beta.IAM().ListExternalGroupRoleMappingsIter)
	beta = withV2beta1Writes(v2, beta, cb.CreateExternalGroupRoleMapping, cb.DeleteExternalGroupRoleMapping)
	return kind{name: "mappings", v1: v1, v2: v2, beta: beta, newParent: a.newProvider}
}

// newOrganization creates an organization: identity providers are in organizations only.
func (a *api) newOrganization(ctx context.Context, group *iam2.Group) (string, error) {
	request := &iam2.CreateGroupRequest{Group: &iam2.Group{Name: strings.ReplaceAll(group.Uid, "/", "-")}}
	created, err := a.v2.IAM().GroupsService().CreateGroup(ctx, request)
	return created.GetUid(), err
}

func (a *api) newProvider(ctx context.Context, group *iam2.Group) (string, error) {
	organization, err := a.newOrganization(ctx, group)
	if err != nil {
		return "", err
	}
	oidc := &iam2.IdentityProvider_OIDC{Issuer: issuer, ClientId: "interop", ClientSecret: "interop-secret"}
	provider := &iam2.IdentityProvider{
		Name: "mapped", DefaultRole: a.lastRole(), Configuration: &iam2.IdentityProvider_Oidc{Oidc: oidc},
	}
	request := &iam2.CreateIdentityProviderRequest{Parent: organization, IdentityProvider: provider}
	created, err := a.v2.IAM().IdentityProvidersService().CreateIdentityProvider(ctx, request)
	return created.GetUid(), err
}
