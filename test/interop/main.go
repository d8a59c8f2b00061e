// Interop calls a server with the libraries that Go programs use: grpc-go, dialled with the options of the platform's Go
// clients, net/http for the token exchange over HTTP/1, and the CloudEvents SDK to receive events. It reads the API from
// the server by gRPC reflection and uses no code generated from this project's contract, so an error in the contract
// cannot cancel itself out.
package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"time"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := run(ctx, os.Getenv("WHARF_URL"), os.Getenv("WHARF_TOKEN"), os.Getenv("WHARF_ORG")); err != nil {
		fmt.Println("interop:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, address, token, org string) error {
	server, err := url.Parse(address)
	if err != nil {
		return err
	}
	anonymous, err := dial(ctx, *server, "")
	if err != nil {
		return err
	}
	defer anonymous.close()
	if err := ping(ctx, anonymous); err != nil {
		return err
	}
	accessToken, err := exchange(ctx, *server, token)
	if err != nil {
		return err
	}
	api, err := dial(ctx, *server, accessToken)
	if err != nil {
		return err
	}
	defer api.close()

	all := resources()
	for _, each := range all {
		if err := each.testLifecycle(ctx, api, org); err != nil {
			return fmt.Errorf("%s: %w", each, err)
		}
	}
	fmt.Printf("interop: %d resources passed\n", len(all))
	events, err := testWebhook(ctx, api, org)
	if err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	fmt.Printf("interop: %d events received and verified\n", events)
	calls, err := testRestart(ctx, api)
	if err != nil {
		return fmt.Errorf("restart: %w", err)
	}
	fmt.Printf("interop: %d calls succeeded while the server restarted\n", calls)
	return nil
}

// ping calls the ping method of all three versions without a token.
func ping(ctx context.Context, api *client) error {
	for _, service := range []string{"ping.PingService", "ping.v2.PingService", "ping.v2beta1.PingService"} {
		response, err := api.call(ctx, service, "Ping", nil)
		if err != nil {
			return fmt.Errorf("%s: %w", service, err)
		}
		if response["response"] != "pong" {
			return fmt.Errorf("%s returned %v", service, response)
		}
	}
	return nil
}
