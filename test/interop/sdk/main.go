// Sdk drives a server by the platform's public Go SDK, unmodified and as its users have it: its clients of v1 and of
// v2beta1 with their paging iterators, its token exchange over gRPC and HTTP/1, and its receiver of events. It has no
// clients of v2; the program beside this one speaks that. Its keychain for registries knows only its vendor's host, so
// that images are pushed with a token for a password.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"chainguard.dev/sdk/auth"
	"chainguard.dev/sdk/proto/chainguard/platform/clients/v2beta1"
	events "chainguard.dev/sdk/proto/chainguard/platform/events/v2beta1"
	"chainguard.dev/sdk/proto/platform"
)

const userAgent = "wharfinger-interop"

// api is the SDK's clients of both versions, logged in with one token.
type api struct {
	server, token string
	early         platform.Clients
	late          v2beta1.Clients
	// events of v2beta1 are not among its clients, but come from a connection.
	events events.Clients
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
	exchanged, err := exchange(ctx, server, token)
	if err != nil {
		return err
	}
	a, err := connect(ctx, server, exchanged)
	if err != nil {
		return err
	}
	defer a.close()
	if err := a.ask(ctx, org); err != nil {
		return err
	}
	kinds := append(iamKinds(a), registryKinds(a)...)
	for _, each := range kinds {
		if err := each.walk(ctx, a, org); err != nil {
			return fmt.Errorf("%s: %w", each.name, err)
		}
	}
	fmt.Printf("interop-sdk: %d kinds of resources passed in v1 and v2beta1\n", len(kinds))
	heard, err := a.listen(ctx, org)
	if err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	fmt.Printf("interop-sdk: %d events received and verified\n", heard)
	return nil
}

// connect dials plaintext for http, as the SDK does for servers inside a cluster.
func connect(ctx context.Context, server, token string) (*api, error) {
	login := auth.NewFromToken(ctx, "Bearer "+token, false)
	early, err := platform.NewPlatformClients(platform.WithUserAgent(ctx, userAgent), server, login)
	if err != nil {
		return nil, err
	}
	late, err := v2beta1.NewClients(ctx, server, userAgent, login)
	if err != nil {
		return nil, err
	}
	return &api{server, token, early, late, events.NewClientsFromConnection(early.Connection())}, nil
}

func (a *api) close() {
	_ = a.early.Close()
	_ = a.late.Close()
}
