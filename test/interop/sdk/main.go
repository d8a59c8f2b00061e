// Sdk calls a server with the public Go SDK of the platform, unmodified: its clients of v1, v2 and v2beta1 with their
// iterators, its token exchange over gRPC and HTTP/1, and its receiver of events. The registry keychain of the SDK supports
// only the host of its vendor, so images are pushed with a token as the password.
package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"chainguard.dev/sdk/auth"
	"chainguard.dev/sdk/proto/chainguard/platform/clients/v2"
	"chainguard.dev/sdk/proto/chainguard/platform/clients/v2beta1"
	iam "chainguard.dev/sdk/proto/chainguard/platform/iam/v2"
	"chainguard.dev/sdk/proto/platform"
	common "chainguard.dev/sdk/proto/platform/common/v1"
)

const userAgent = "wharfinger-interop"

// api has the SDK clients of all versions, authenticated with one token.
type api struct {
	server, token string
	v1            platform.Clients
	v2            v2.Clients
	beta          v2beta1.Clients
	// roles are the uids of the built-in roles, and identity that of an identity for role bindings.
	roles    []string
	identity string
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := run(ctx, os.Getenv("WHARF_URL"), os.Getenv("WHARF_TOKEN"), os.Getenv("WHARF_ORG")); err != nil {
		fmt.Println("interop-sdk:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, server, token, org string) error {
	accessToken, err := exchange(ctx, server, token)
	if err != nil {
		return err
	}
	a, err := connect(ctx, server, accessToken)
	if err != nil {
		return err
	}
	defer a.close()
	if err := a.prepare(ctx, org); err != nil {
		return fmt.Errorf("preparation: %w", err)
	}
	calls, err := a.testOtherCalls(ctx, org)
	if err != nil {
		return err
	}
	fmt.Printf("interop-sdk: %d other calls passed\n", calls)
	kinds := slices.Concat(iamKinds(a), registryKinds(a), []kind{subscriptions(a)})
	for _, each := range kinds {
		if err := each.testLifecycle(ctx, a, org); err != nil {
			return fmt.Errorf("%s: %w", each.name, err)
		}
	}
	fmt.Printf("interop-sdk: %d kinds of resources passed in v1, v2 and v2beta1\n", len(kinds))
	events, err := a.testWebhook(ctx, org)
	if err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	fmt.Printf("interop-sdk: %d events received and verified\n", events)
	return nil
}

// connect creates the clients. They send the token over plaintext too, because the URL of the server is http.
func connect(ctx context.Context, server, token string) (*api, error) {
	login := auth.NewFromToken(ctx, "Bearer "+token, false)
	v1Clients, err := platform.NewPlatformClients(platform.WithUserAgent(ctx, userAgent), server, login)
	if err != nil {
		return nil, err
	}
	v2Clients, err := v2.NewClients(ctx, server, userAgent, login)
	if err != nil {
		return nil, err
	}
	betaClients, err := v2beta1.NewClients(ctx, server, userAgent, login)
	if err != nil {
		return nil, err
	}
	return &api{server: server, token: token, v1: v1Clients, v2: v2Clients, beta: betaClients}, nil
}

func (a *api) close() {
	_ = a.v1.Close()
	_ = a.v2.Close()
	_ = a.beta.Close()
}

func (a *api) prepare(ctx context.Context, org string) error {
	for role, err := range a.v2.IAM().ListRolesIter(ctx, &iam.ListRolesRequest{Uidp: &common.UIDPFilter{InRoot: true}}) {
		if err != nil {
			return err
		}
		a.roles = append(a.roles, role.Uid)
	}
	request := &iam.CreateIdentityRequest{Parent: org, Identity: &iam.Identity{Name: "sdk-bound"}}
	identity, err := a.v2.IAM().IdentitiesService().CreateIdentity(ctx, request)
	a.identity = identity.GetUid()
	return err
}

func (a *api) lastRole() string { return a.roles[len(a.roles)-1] }

func (a *api) newGroup(ctx context.Context, parent, name string) (*iam.Group, error) {
	request := &iam.CreateGroupRequest{Parent: parent, Group: &iam.Group{Name: name}}
	return a.v2.IAM().GroupsService().CreateGroup(ctx, request)
}
