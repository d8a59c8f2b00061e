package main

import (
	"context"
	"path"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// imageDigest is the digest of an image without layers.
var imageDigest = func() string {
	digest, err := empty.Image.Digest()
	if err != nil {
		panic(err)
	}
	return digest.String()
}()

// newRepoWithImage creates a repo in a group, pushes an image with the token as the password, and returns the uid of the
// repo.
func newRepoWithImage(ctx context.Context, api *client, group string) (string, error) {
	request := fields{"parent": group, "repo": fields{"name": "tagged"}}
	created, err := api.call(ctx, "registry.v2.ReposService", "CreateRepo", request)
	if err != nil {
		return "", err
	}
	prefix, err := groupPath(ctx, api, group)
	if err != nil {
		return "", err
	}
	repo, err := name.NewRepository(path.Join(api.server.Host, prefix, "tagged"))
	if err != nil {
		return "", err
	}
	login := remote.WithAuth(&authn.Basic{Username: "_token", Password: api.token})
	return created["uid"].(string), remote.Write(repo.Digest(imageDigest), empty.Image, login, remote.WithContext(ctx))
}

// groupPath joins the names of the ancestors of a group and its own, as in the name of an image.
func groupPath(ctx context.Context, api *client, group string) (string, error) {
	response, err := api.call(ctx, "iam.v2.GroupsService", "GetGroup", fields{"uid": group})
	if err != nil {
		return "", err
	}
	groupName := response["name"].(string)
	if path.Dir(group) == "." {
		return groupName, nil
	}
	parent, err := groupPath(ctx, api, path.Dir(group))
	return path.Join(parent, groupName), err
}

func tagBody(_ context.Context, _ *client, _ string, n int) (fields, error) {
	return fields{"name": tagName(n), "digest": imageDigest}, nil
}
