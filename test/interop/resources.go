package main

import (
	"context"
	"fmt"
	"strings"
)

// viewer is the name of a built-in role. Its uid differs between servers.
const viewer = "viewer"

// resources returns every kind of resource that can be written, in every version.
func resources() []resource {
	all := []resource{}
	for _, version := range []string{"v2", "v2beta1"} {
		all = append(all, v2Resources(version)...)
	}
	return append(all, v1Resources()...)
}

func v2Resources(version string) []resource {
	iam := func(name, singular, item, list string) resource {
		return resource{
			service: fmt.Sprintf("iam.%s.%sService", version, name), singular: singular, plural: name,
			parent: "parent", id: "uid", item: item, list: list,
		}
	}
	groups := iam("Groups", "Group", "group", "groups")
	groups.body, groups.change = namedBody, changedDescription
	identities := iam("Identities", "Identity", "identity", "identities")
	identities.body, identities.change = identityBody("claimMatch"), changedDescription
	roles := iam("Roles", "Role", "role", "roles")
	roles.body, roles.change = roleBody("CAP_IAM_GROUPS_LIST"), changedDescription
	bindings := iam("RoleBindings", "RoleBinding", "roleBinding", "roleBindings")
	bindings.body = roleBindingBody("identityUid", "roleUid")
	providers := iam("IdentityProviders", "IdentityProvider", "identityProvider", "identityProviders")
	providers.body, providers.change, providers.newParent = providerBody, changedDescription, newOrganization
	mappings := iam("ExternalGroupRoleMappings", "ExternalGroupRoleMapping", "externalGroupRoleMapping", "externalGroupRoleMappings")
	mappings.body, mappings.newParent = mappingBody("roleUid"), newProvider
	invites := iam("GroupInvites", "GroupInvite", "groupInvite", "groupInvites")
	invites.body = inviteBody("roleUid")
	associations := iam("AccountAssociations", "AccountAssociation", "accountAssociation", "accountAssociations")
	associations.body, associations.change, associations.single = associationBody, changedDescription, true
	repos := resource{
		service: "registry." + version + ".ReposService", singular: "Repo", plural: "Repos",
		parent: "parent", id: "uid", item: "repo", list: "repos", body: repoBody, change: changedDescription,
	}
	tags := resource{
		service: "registry." + version + ".TagsService", singular: "Tag", plural: "Tags",
		parent: "parent", id: "uid", item: "tag", list: "tags", body: tagBody, newParent: newRepoWithImage,
	}
	subscriptions := resource{
		service: "events." + version + ".SubscriptionsService", singular: "Subscription", plural: "Subscriptions",
		parent: "parent", id: "uid", item: "subscription", list: "subscriptions", body: subscriptionBody,
	}
	return []resource{
		groups, identities, roles, bindings, providers, mappings, invites, associations, repos, tags, subscriptions,
	}
}

func v1Resources() []resource {
	iam := func(name, parent, item string) resource {
		return resource{service: "iam." + name, isV1: true, parent: parent, id: "id", item: item, list: "items"}
	}
	// An update of v1 replaces the whole resource.
	replacement := fields{"name": "renamed", "description": "changed"}
	groups := iam("Groups", "parent", "group")
	groups.body, groups.change = namedBody, replacement
	identities := iam("Identities", "parentId", "identity")
	identities.body, identities.change = identityBody("claimMatch"), replacement
	roles := iam("Roles", "parentId", "role")
	roles.body, roles.change = roleBody("groups.list"), replacement
	bindings := iam("RoleBindings", "parent", "roleBinding")
	bindings.body = roleBindingBody("identity", "role")
	providers := iam("IdentityProviders", "parentId", "identityProvider")
	providers.body, providers.newParent = providerBody, newOrganization
	mappings := iam("ExternalGroupRoleMappings", "parentId", "mapping")
	mappings.body, mappings.newParent = mappingBody("roleUidp"), newProvider
	invites := iam("GroupInvites", "group", "")
	invites.body = inviteBody("role")
	associations := iam("GroupAccountAssociations", "group", "")
	associations.id, associations.single = "group", true
	associations.body, associations.change = associationBody, replacement
	subscriptions := resource{
		service: "events.Subscriptions", isV1: true,
		parent: "parentId", id: "id", item: "subscription", list: "items", body: subscriptionBody,
	}
	repos := resource{
		service: "registry.Registry", isV1: true, singular: "Repo", plural: "Repos",
		parent: "parentId", id: "id", item: "repo", list: "items", body: repoBody,
		change: fields{"name": "renamed", "description": "changed", "catalogTier": "FIPS"},
	}
	tags := resource{
		service: "registry.Registry", isV1: true, singular: "Tag", plural: "Tags",
		parent: "repoId", id: "id", item: "tag", list: "items", body: tagBody, newParent: newRepoWithImage,
		change: fields{"name": tagName(0), "digest": imageDigest, "deprecated": true},
	}
	advisories := resource{
		service: "vulnerabilities.v1.Advisories", isV1: true,
		parent: "parentId", id: "id", item: "advisory", list: "items", body: advisoryBody,
		change: fields{"artifactName": "renamed", "componentName": "changed"},
	}
	return []resource{
		groups, identities, roles, bindings, providers, mappings, invites, associations, subscriptions,
		repos, tags, advisories,
	}
}

// changedDescription is the change of most partial updates.
var changedDescription = fields{"description": "changed"}

func namedBody(_ context.Context, _ *client, _ string, n int) (fields, error) {
	return fields{"name": fmt.Sprintf("interop %d", n)}, nil
}

func repoBody(_ context.Context, _ *client, _ string, n int) (fields, error) {
	return fields{"name": fmt.Sprintf("interop-%d", n)}, nil
}

func tagName(n int) string { return fmt.Sprintf("interop-%d", n) }

func advisoryBody(_ context.Context, _ *client, _ string, n int) (fields, error) {
	return fields{"artifactName": fmt.Sprintf("interop-%d", n), "aliases": []string{fmt.Sprintf("CVE-2026-%d", n)}}, nil
}

func identityBody(field string) func(context.Context, *client, string, int) (fields, error) {
	return func(_ context.Context, _ *client, _ string, n int) (fields, error) {
		match := fields{"issuer": "https://issuer.example.com", "subject": fmt.Sprintf("interop %d", n)}
		return fields{"name": fmt.Sprintf("interop %d", n), field: match}, nil
	}
}

func roleBody(capability string) func(context.Context, *client, string, int) (fields, error) {
	return func(_ context.Context, _ *client, _ string, n int) (fields, error) {
		return fields{"name": fmt.Sprintf("interop %d", n), "capabilities": []string{capability}}, nil
	}
}

// roleBindingBody binds a new identity. The identity is deleted with its group.
func roleBindingBody(identity, role string) func(context.Context, *client, string, int) (fields, error) {
	return func(ctx context.Context, api *client, parent string, n int) (fields, error) {
		request := fields{"parent": parent, "identity": fields{"name": fmt.Sprintf("bound %d", n)}}
		created, err := api.call(ctx, "iam.v2.IdentitiesService", "CreateIdentity", request)
		if err != nil {
			return nil, err
		}
		uid, err := roleUID(ctx, api, viewer)
		return fields{identity: created["uid"], role: uid}, err
	}
}

func providerBody(ctx context.Context, api *client, _ string, n int) (fields, error) {
	uid, err := roleUID(ctx, api, viewer)
	oidc := fields{"issuer": "https://login.example.com", "clientId": "interop", "clientSecret": "interop"}
	return fields{"name": fmt.Sprintf("interop %d", n), "defaultRole": uid, "oidc": oidc}, err
}

// newOrganization creates an organization: identity providers are in organizations only.
func newOrganization(ctx context.Context, api *client, group string) (string, error) {
	return newGroup(ctx, api, "", group[strings.LastIndex(group, "/")+1:])
}

func newProvider(ctx context.Context, api *client, group string) (string, error) {
	organization, err := newOrganization(ctx, api, group)
	if err != nil {
		return "", err
	}
	body, err := providerBody(ctx, api, organization, 0)
	if err != nil {
		return "", err
	}
	request := fields{"parent": organization, "identityProvider": body}
	created, err := api.call(ctx, "iam.v2.IdentityProvidersService", "CreateIdentityProvider", request)
	if err != nil {
		return "", err
	}
	return created["uid"].(string), nil
}

func mappingBody(role string) func(context.Context, *client, string, int) (fields, error) {
	return func(ctx context.Context, api *client, _ string, n int) (fields, error) {
		uid, err := roleUID(ctx, api, viewer)
		return fields{"externalGroupId": fmt.Sprintf("interop %d", n), role: uid}, err
	}
}

func inviteBody(role string) func(context.Context, *client, string, int) (fields, error) {
	return func(ctx context.Context, api *client, _ string, _ int) (fields, error) {
		uid, err := roleUID(ctx, api, viewer)
		return fields{role: uid, "ttl": "3600s"}, err
	}
}

func associationBody(_ context.Context, _ *client, _ string, n int) (fields, error) {
	return fields{"name": fmt.Sprintf("interop %d", n), "amazon": fields{"account": "123456789012"}}, nil
}

func subscriptionBody(_ context.Context, _ *client, _ string, n int) (fields, error) {
	return fields{"sink": fmt.Sprintf("https://hooks.example.com/%d", n)}, nil
}

func roleUID(ctx context.Context, api *client, name string) (string, error) {
	response, err := api.call(ctx, "iam.v2.RolesService", "ListRoles", fields{"name": name, "uidp": fields{"inRoot": true}})
	if err != nil {
		return "", err
	}
	roles, _ := response["roles"].([]any)
	if len(roles) != 1 {
		return "", fmt.Errorf("found %d roles named %s", len(roles), name)
	}
	return roles[0].(fields)["uid"].(string), nil
}
