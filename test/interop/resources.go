package main

import (
	"context"
	"fmt"
)

// viewer is found by its name: the uids of built-in roles are the server's own.
const viewer = "viewer"

// resources are all kinds of things that can be written, in every version.
func resources() []resource {
	all := []resource{}
	for _, version := range []string{"v2", "v2beta1"} {
		all = append(all, modern(version)...)
	}
	return append(all, early()...)
}

func modern(version string) []resource {
	iam := func(name, singular, item, list string) resource {
		return resource{
			service: fmt.Sprintf("iam.%s.%sService", version, name), singular: singular, plural: name,
			parent: "parent", id: "uid", item: item, list: list,
		}
	}
	groups := iam("Groups", "Group", "group", "groups")
	groups.body, groups.change = named, described
	identities := iam("Identities", "Identity", "identity", "identities")
	identities.body, identities.change = withLogin("claimMatch"), described
	roles := iam("Roles", "Role", "role", "roles")
	roles.body, roles.change = withCapabilities("CAP_IAM_GROUPS_LIST"), described
	bindings := iam("RoleBindings", "RoleBinding", "roleBinding", "roleBindings")
	bindings.body = bound("identityUid", "roleUid")
	providers := iam("IdentityProviders", "IdentityProvider", "identityProvider", "identityProviders")
	providers.body, providers.change = provider, described
	mappings := iam("ExternalGroupRoleMappings", "ExternalGroupRoleMapping", "externalGroupRoleMapping", "externalGroupRoleMappings")
	mappings.body, mappings.makeParent = mapped("roleUid"), newProvider
	invites := iam("GroupInvites", "GroupInvite", "groupInvite", "groupInvites")
	invites.body = invited("roleUid")
	associations := iam("AccountAssociations", "AccountAssociation", "accountAssociation", "accountAssociations")
	associations.body, associations.change, associations.single = associated, described, true
	repos := resource{
		service: "registry." + version + ".ReposService", singular: "Repo", plural: "Repos",
		parent: "parent", id: "uid", item: "repo", list: "repos", body: repo, change: described,
	}
	tags := resource{
		service: "registry." + version + ".TagsService", singular: "Tag", plural: "Tags",
		parent: "parent", id: "uid", item: "tag", list: "tags", body: tag, makeParent: newImage,
	}
	subscriptions := resource{
		service: "events." + version + ".SubscriptionsService", singular: "Subscription", plural: "Subscriptions",
		parent: "parent", id: "uid", item: "subscription", list: "subscriptions", body: subscribed,
	}
	return []resource{
		groups, identities, roles, bindings, providers, mappings, invites, associations, repos, tags, subscriptions,
	}
}

func early() []resource {
	iam := func(name, parent, item string) resource {
		return resource{service: "iam." + name, early: true, parent: parent, id: "id", item: item, list: "items"}
	}
	// A PUT replaces, so it says all that there is to say.
	named2 := fields{"name": "renamed", "description": "changed"}
	groups := iam("Groups", "parent", "group")
	groups.body, groups.change = named, named2
	identities := iam("Identities", "parentId", "identity")
	identities.body, identities.change = withLogin("claimMatch"), named2
	roles := iam("Roles", "parentId", "role")
	roles.body, roles.change = withCapabilities("groups.list"), named2
	bindings := iam("RoleBindings", "parent", "roleBinding")
	bindings.body = bound("identity", "role")
	providers := iam("IdentityProviders", "parentId", "identityProvider")
	providers.body = provider
	mappings := iam("ExternalGroupRoleMappings", "parentId", "mapping")
	mappings.body, mappings.makeParent = mapped("roleUidp"), newProvider
	invites := iam("GroupInvites", "group", "")
	invites.body = invited("role")
	associations := iam("GroupAccountAssociations", "group", "")
	associations.id, associations.single = "group", true
	associations.body, associations.change = associated, named2
	subscriptions := resource{
		service: "events.Subscriptions", early: true,
		parent: "parentId", id: "id", item: "subscription", list: "items", body: subscribed,
	}
	repos := resource{
		service: "registry.Registry", early: true, singular: "Repo", plural: "Repos",
		parent: "parentId", id: "id", item: "repo", list: "items", body: repo,
		change: fields{"name": "renamed", "description": "changed", "catalogTier": "FIPS"},
	}
	tags := resource{
		service: "registry.Registry", early: true, singular: "Tag", plural: "Tags",
		parent: "repoId", id: "id", item: "tag", list: "items", body: tag, makeParent: newImage,
		change: fields{"name": tagNamed(0), "digest": imageDigest, "deprecated": true},
	}
	advisories := resource{
		service: "vulnerabilities.v1.Advisories", early: true,
		parent: "parentId", id: "id", item: "advisory", list: "items", body: advisory,
		change: fields{"artifactName": "renamed", "componentName": "changed"},
	}
	return []resource{
		groups, identities, roles, bindings, providers, mappings, invites, associations, subscriptions,
		repos, tags, advisories,
	}
}

var described = fields{"description": "changed"}

func named(_ context.Context, _ *client, _ string, n int) (fields, error) {
	return fields{"name": fmt.Sprintf("interop %d", n)}, nil
}

func repo(_ context.Context, _ *client, _ string, n int) (fields, error) {
	return fields{"name": fmt.Sprintf("interop-%d", n)}, nil
}

func tagNamed(n int) string { return fmt.Sprintf("interop-%d", n) }

func advisory(_ context.Context, _ *client, _ string, n int) (fields, error) {
	return fields{"artifactName": fmt.Sprintf("interop-%d", n), "aliases": []string{fmt.Sprintf("CVE-2026-%d", n)}}, nil
}

func withLogin(field string) func(context.Context, *client, string, int) (fields, error) {
	return func(_ context.Context, _ *client, _ string, n int) (fields, error) {
		match := fields{"issuer": "https://issuer.example.com", "subject": fmt.Sprintf("interop %d", n)}
		return fields{"name": fmt.Sprintf("interop %d", n), field: match}, nil
	}
}

func withCapabilities(capability string) func(context.Context, *client, string, int) (fields, error) {
	return func(_ context.Context, _ *client, _ string, n int) (fields, error) {
		return fields{"name": fmt.Sprintf("interop %d", n), "capabilities": []string{capability}}, nil
	}
}

// bound binds a new identity, which goes along with its group.
func bound(identity, role string) func(context.Context, *client, string, int) (fields, error) {
	return func(ctx context.Context, api *client, parent string, n int) (fields, error) {
		request := fields{"parent": parent, "identity": fields{"name": fmt.Sprintf("bound %d", n)}}
		made, err := api.call(ctx, "iam.v2.IdentitiesService", "CreateIdentity", request)
		if err != nil {
			return nil, err
		}
		uid, err := roleNamed(ctx, api, viewer)
		return fields{identity: made["uid"], role: uid}, err
	}
}

func provider(ctx context.Context, api *client, _ string, n int) (fields, error) {
	uid, err := roleNamed(ctx, api, viewer)
	oidc := fields{"issuer": "https://login.example.com", "clientId": "interop", "clientSecret": "interop"}
	return fields{"name": fmt.Sprintf("interop %d", n), "defaultRole": uid, "oidc": oidc}, err
}

func newProvider(ctx context.Context, api *client, group string) (string, error) {
	body, err := provider(ctx, api, group, 0)
	if err != nil {
		return "", err
	}
	request := fields{"parent": group, "identityProvider": body}
	made, err := api.call(ctx, "iam.v2.IdentityProvidersService", "CreateIdentityProvider", request)
	if err != nil {
		return "", err
	}
	return made["uid"].(string), nil
}

func mapped(role string) func(context.Context, *client, string, int) (fields, error) {
	return func(ctx context.Context, api *client, _ string, n int) (fields, error) {
		uid, err := roleNamed(ctx, api, viewer)
		return fields{"externalGroupId": fmt.Sprintf("interop %d", n), role: uid}, err
	}
}

func invited(role string) func(context.Context, *client, string, int) (fields, error) {
	return func(ctx context.Context, api *client, _ string, _ int) (fields, error) {
		uid, err := roleNamed(ctx, api, viewer)
		return fields{role: uid, "ttl": "3600s"}, err
	}
}

func associated(_ context.Context, _ *client, _ string, n int) (fields, error) {
	return fields{"name": fmt.Sprintf("interop %d", n), "amazon": fields{"account": "123456789012"}}, nil
}

func subscribed(_ context.Context, _ *client, _ string, n int) (fields, error) {
	return fields{"sink": fmt.Sprintf("https://hooks.example.com/%d", n)}, nil
}

func roleNamed(ctx context.Context, api *client, name string) (string, error) {
	answer, err := api.call(ctx, "iam.v2.RolesService", "ListRoles", fields{"name": name, "uidp": fields{"inRoot": true}})
	if err != nil {
		return "", err
	}
	roles, _ := answer["roles"].([]any)
	if len(roles) != 1 {
		return "", fmt.Errorf("there are %d roles named %s", len(roles), name)
	}
	return roles[0].(fields)["uid"].(string), nil
}
