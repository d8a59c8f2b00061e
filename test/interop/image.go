package main

import (
	"context"
	"path"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// imageDigest is that of an image without layers, which is the same wherever it is.
var imageDigest = func() string {
	digest, err := empty.Image.Digest()
	if err != nil {
		panic(err)
	}
	return digest.String()
}()

// newImage pushes an image into a new repo of a group, with a token for a password as registry clients have it, and
// answers the uid of the repo.
func newImage(ctx context.Context, api *client, group string) (string, error) {
	request := fields{"parent": group, "repo": fields{"name": "tagged"}}
	made, err := api.call(ctx, "registry.v2.ReposService", "CreateRepo", request)
	if err != nil {
		return "", err
	}
	place, err := pathOf(ctx, api, group)
	if err != nil {
		return "", err
	}
	repo, err := name.NewRepository(path.Join(api.server.Host, place, "tagged"))
	if err != nil {
		return "", err
	}
	login := remote.WithAuth(&authn.Basic{Username: "_token", Password: api.token})
	return made["uid"].(string), remote.Write(repo.Digest(imageDigest), empty.Image, login, remote.WithContext(ctx))
}

// pathOf is the names of a group and of those above it, as they stand in the name of an image.
func pathOf(ctx context.Context, api *client, group string) (string, error) {
	answer, err := api.call(ctx, "iam.v2.GroupsService", "GetGroup", fields{"uid": group})
	if err != nil {
		return "", err
	}
	own := answer["name"].(string)
	if path.Dir(group) == "." {
		return own, nil
	}
	above, err := pathOf(ctx, api, path.Dir(group))
	return path.Join(above, own), err
}

func tag(_ context.Context, _ *client, _ string, n int) (fields, error) {
	return fields{"name": tagNamed(n), "digest": imageDigest}, nil
}
