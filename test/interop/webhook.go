package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"github.com/coreos/go-oidc/v3/oidc"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// webhookTimeout is how long all events may take to arrive.
const webhookTimeout = 30 * time.Second

// receiver receives the deliveries of a subscription. It verifies the Standard Webhooks signature, and the token with the
// keys from the discovery document of the issuer.
type receiver struct {
	group   string
	webhook *standardwebhooks.Webhook
	tokens  *oidc.IDTokenVerifier
	// accepted receives a copy of each request that was verified.
	accepted chan *http.Request
}

// testWebhook subscribes to a group, creates a child group, and checks the events. It returns the number of events.
func testWebhook(ctx context.Context, api *client, org string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, webhookTimeout)
	defer cancel()
	group, err := newGroup(ctx, api, org, "webhook")
	if err != nil {
		return 0, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	sink := fmt.Sprintf("http://%s/hook", listener.Addr())
	subscription, secret, err := subscribe(ctx, api, group, sink)
	if err != nil {
		return 0, err
	}
	provider, err := oidc.NewProvider(ctx, api.server.String())
	if err != nil {
		return 0, err
	}
	webhook, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		return 0, err
	}
	r := receiver{group, webhook, provider.Verifier(&oidc.Config{ClientID: "customer"}), make(chan *http.Request, 10)}
	events, err := r.start(ctx, listener)
	if err != nil {
		return 0, err
	}
	child, err := newGroup(ctx, api, group, "child")
	if err != nil {
		return 0, err
	}

	// A subscription first receives the event of its own creation.
	expected := []struct{ eventType, subject string }{
		{"dev.chainguard.api.events.subscription.created.v1", subscription},
		{"dev.chainguard.api.iam.group.created.v1", child},
	}
	for _, want := range expected {
		select {
		case event := <-events:
			if event.Type() != want.eventType || event.Subject() != want.subject {
				return 0, fmt.Errorf("got %s about %s, not %s about %s", event.Type(), event.Subject(), want.eventType, want.subject)
			}
			if err := checkEvent(event, api.server.String(), subscription); err != nil {
				return 0, err
			}
		case <-ctx.Done():
			return 0, fmt.Errorf("%s was not received", want.eventType)
		}
	}
	return len(expected), checkForgeryIsRejected(ctx, sink, <-r.accepted)
}

// subscribe creates a subscription and returns its uid and its secret, which only the response header of the create has.
func subscribe(ctx context.Context, api *client, group, sink string) (string, string, error) {
	var header metadata.MD
	request := fields{"parent": group, "subscription": fields{"sink": sink}}
	created, err := api.call(ctx, "events.v2.SubscriptionsService", "CreateSubscription", request, grpc.Header(&header))
	if err != nil {
		return "", "", err
	}
	secret := header.Get("wharfinger-webhook-secret")
	if len(secret) != 1 {
		return "", "", errors.New("the response header has no webhook secret")
	}
	return created["uid"].(string), secret[0], nil
}

// start receives events until the context ends. Requests that cannot be verified are rejected.
func (r receiver) start(ctx context.Context, listener net.Listener) (<-chan cloudevents.Event, error) {
	protocol, err := cloudevents.NewHTTP(cehttp.WithListener(listener), cehttp.WithPath("/hook"), cehttp.WithMiddleware(r.verifyRequests))
	if err != nil {
		return nil, err
	}
	client, err := cloudevents.NewClient(protocol)
	if err != nil {
		return nil, err
	}
	events := make(chan cloudevents.Event, 10)
	go func() { _ = client.StartReceiver(ctx, func(event cloudevents.Event) { events <- event }) }()
	return events, nil
}

func (r receiver) verifyRequests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err == nil {
			err = r.verify(request, body)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		request.Body = io.NopCloser(bytes.NewReader(body))
		clone := request.Clone(context.Background())
		clone.Body = io.NopCloser(bytes.NewReader(body))
		r.accepted <- clone
		next.ServeHTTP(w, request)
	})
}

func (r receiver) verify(request *http.Request, body []byte) error {
	if err := r.webhook.Verify(body, request.Header); err != nil {
		return err
	}
	raw, ok := strings.CutPrefix(request.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return errors.New("the request has no bearer token")
	}
	token, err := r.tokens.Verify(request.Context(), raw)
	if err != nil {
		return err
	}
	if token.Subject != "webhook:"+r.group {
		return fmt.Errorf("the subject of the token is %s", token.Subject)
	}
	var claims struct {
		Webhook struct{ Digest string }
	}
	if err := token.Claims(&claims); err != nil {
		return err
	}
	if sum := sha256.Sum256(body); claims.Webhook.Digest != "sha256:"+hex.EncodeToString(sum[:]) {
		return errors.New("the token has the digest of another body")
	}
	return nil
}

func checkEvent(event cloudevents.Event, source, subscription string) error {
	if err := event.Validate(); err != nil {
		return err
	}
	if !strings.HasPrefix(event.Source(), source+"/") || event.Extensions()["chainguarddev1subscription"] != subscription {
		return fmt.Errorf("%s has source %s and subscription %v", event.Type(), event.Source(), event.Extensions()["chainguarddev1subscription"])
	}
	var data struct {
		Actor struct{ Subject string }
		Body  struct{ ID string }
	}
	if err := event.DataAs(&data); err != nil {
		return err
	}
	if data.Actor.Subject == "" || data.Body.ID != event.Subject() {
		return fmt.Errorf("%s has data %+v", event.Type(), data)
	}
	return nil
}

// checkForgeryIsRejected sends an accepted request again with a changed body. If it is accepted, the receiver verifies
// nothing.
func checkForgeryIsRejected(ctx context.Context, sink string, accepted *http.Request) error {
	body, err := io.ReadAll(accepted.Body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, sink, bytes.NewReader(bytes.ToUpper(body)))
	if err != nil {
		return err
	}
	request.Header = accepted.Header
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusForbidden {
		return fmt.Errorf("a forged event was not rejected: %s", response.Status)
	}
	return nil
}
