package main

import (
	"context"
	"path"
	"strings"

	iam "chainguard.dev/sdk/proto/chainguard/platform/iam/v2"
	registry2 "chainguard.dev/sdk/proto/chainguard/platform/registry/v2"
	vulnerabilities2 "chainguard.dev/sdk/proto/chainguard/platform/vulnerabilities/v2"
	registry1 "chainguard.dev/sdk/proto/platform/registry/v1"
	vulnerabilities1 "chainguard.dev/sdk/proto/platform/vulnerabilities/v1"
	"chainguard.dev/sdk/uidp"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

func registryKinds(a *api) []kind { return []kind{repos(a), tags(a), advisories(a)} }

func repos(a *api) kind {
	c1, c2, cb := a.v1.Registry().Registry(), a.v2.Registry(), a.beta.Registry()
	v1 := v1Reader(c1.ListRepos, func(r *registry1.Repo) []any { return []any{r.Name, r.Description, r.CatalogTier.String()} })
	v1 = withWrites(v1, c1.CreateRepo, func(parent string, n int) *registry1.CreateRepoRequest {
		repo := &registry1.Repo{Name: nameOf(n), CatalogTier: registry1.CatalogTier_FIPS}
		return &registry1.CreateRepoRequest{ParentId: parent, Repo: repo}
	}, c1.DeleteRepo)
	v1 = withUpdate(v1, c1.UpdateRepo, func(r *registry1.Repo) *registry1.Repo {
		r.Description = newDescription
		return r
	})
	v2 := v2Reader(c2.ReposService().GetRepo, c2.ListReposIter, func(r *registry2.Repo) []any {
		return []any{r.Name, r.Description, strings.TrimPrefix(r.CatalogTier.String(), "CATALOG_TIER_")}
	})
	v2 = withWrites(v2, c2.ReposService().CreateRepo, func(parent string, n int) *registry2.CreateRepoRequest {
		repo := &registry2.Repo{Name: nameOf(n), CatalogTier: registry2.CatalogTier_CATALOG_TIER_FIPS}
		return &registry2.CreateRepoRequest{Parent: parent, Repo: repo}
	}, c2.ReposService().DeleteRepo)
	v2 = withUpdate(v2, c2.ReposService().UpdateRepo, func(r *registry2.Repo) *registry2.UpdateRepoRequest {
		r.Description = newDescription
		return &registry2.UpdateRepoRequest{Repo: r, UpdateMask: onlyDescription}
	})
	beta := v2beta1Reader(v2, cb.ReposService().GetRepo, cb.ListReposIter)
	beta = withV2beta1Writes(v2, beta, cb.ReposService().CreateRepo, cb.ReposService().DeleteRepo)
	beta = withV2beta1Update(v2, beta, cb.ReposService().UpdateRepo)
	return kind{name: "repos", v1: v1, v2: v2, beta: beta}
}

// tags can be updated only through v1.
func tags(a *api) kind {
	c1, c2, cb := a.v1.Registry().Registry(), a.v2.Registry(), a.beta.Registry()
	digest := imageDigest()
	v1 := v1Reader(c1.ListTags, func(t *registry1.Tag) []any { return []any{t.Name, t.Digest, t.Deprecated} })
	v1 = withWrites(v1, c1.CreateTag, func(parent string, n int) *registry1.CreateTagRequest {
		return &registry1.CreateTagRequest{RepoId: parent, Tag: &registry1.Tag{Name: nameOf(n), Digest: digest}}
	}, c1.DeleteTag)
	v1 = withUpdate(v1, c1.UpdateTag, func(t *registry1.Tag) *registry1.Tag {
		t.Deprecated = true
		return t
	})
	v2 := v2Reader(c2.TagsService().GetTag, c2.ListTagsIter, func(t *registry2.Tag) []any {
		return []any{t.Name, t.Digest, t.Deprecated}
	})
	v2 = withWrites(v2, c2.TagsService().CreateTag, func(parent string, n int) *registry2.CreateTagRequest {
		return &registry2.CreateTagRequest{Parent: parent, Tag: &registry2.Tag{Name: nameOf(n), Digest: digest}}
	}, c2.TagsService().DeleteTag)
	beta := v2beta1Reader(v2, cb.TagsService().GetTag, cb.ListTagsIter)
	beta = withV2beta1Writes(v2, beta, cb.TagsService().CreateTag, cb.TagsService().DeleteTag)
	return kind{name: "tags", v1: v1, v2: v2, beta: beta, newParent: a.newRepoWithImage}
}

// advisories can be written only through v1.
func advisories(a *api) kind {
	c1, c2, cb := a.v1.Vulnerabilities().Advisories(), a.v2.Vulnerabilities(), a.beta.Vulnerabilities()
	v1 := v1Reader(c1.List, func(x *vulnerabilities1.Advisory) []any {
		return []any{x.AdvisoryId, x.ArtifactName, x.GetComponentName(), x.Aliases}
	})
	v1 = withWrites(v1, c1.Create, func(parent string, n int) *vulnerabilities1.CreateAdvisoryRequest {
		advisory := &vulnerabilities1.Advisory{ArtifactName: nameOf(n), Aliases: []string{"CVE-2026-1234"}}
		return &vulnerabilities1.CreateAdvisoryRequest{ParentId: parent, Advisory: advisory}
	}, c1.Delete)
	v1 = withUpdate(v1, c1.Update, func(x *vulnerabilities1.Advisory) *vulnerabilities1.Advisory {
		component := "component"
		x.ComponentName = &component
		return x
	})
	v2 := v2Reader(c2.AdvisoriesService().GetAdvisory, c2.ListAdvisoriesIter, func(x *vulnerabilities2.Advisory) []any {
		return []any{x.AdvisoryId, x.ArtifactName, x.ComponentName, x.Aliases}
	})
	beta := v2beta1Reader(v2, cb.AdvisoriesService().GetAdvisory, cb.ListAdvisoriesIter)
	return kind{name: "advisories", v1: v1, v2: v2, beta: beta}
}

// newRepoWithImage creates a repo in a group, pushes an image without layers, and returns the uid of the repo.
func (a *api) newRepoWithImage(ctx context.Context, group *iam.Group) (string, error) {
	request := &registry1.CreateRepoRequest{ParentId: group.Uid, Repo: &registry1.Repo{Name: "tagged"}}
	created, err := a.v1.Registry().Registry().CreateRepo(ctx, request)
	if err != nil {
		return "", err
	}
	org, err := a.v2.IAM().GroupsService().GetGroup(ctx, &iam.GetGroupRequest{Uid: uidp.Parent(group.Uid)})
	if err != nil {
		return "", err
	}
	host := strings.TrimPrefix(a.server, "http://")
	repo, err := name.NewRepository(path.Join(host, org.Name, group.Name, created.Name))
	if err != nil {
		return "", err
	}
	login := remote.WithAuth(&authn.Basic{Username: "_token", Password: a.token})
	return created.Id, remote.Write(repo.Digest(imageDigest()), empty.Image, login, remote.WithContext(ctx))
}

func imageDigest() string {
	digest, err := empty.Image.Digest()
	if err != nil {
		panic(err)
	}
	return digest.String()
}
