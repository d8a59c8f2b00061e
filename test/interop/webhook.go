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

// patience is how long an event may take to arrive.
const patience = 30 * time.Second

// receiver takes in what a subscription sends, and verifies it both ways: by the signature of Standard Webhooks, and by
// the token, whose keys it finds through the discovery document of the issuer.
type receiver struct {
	group   string
	webhook *standardwebhooks.Webhook
	tokens  *oidc.IDTokenVerifier
	// copies are the requests that were accepted.
	copies chan *http.Request
}

// listen subscribes to a group, changes something in it, and answers how many events came, all as they should be.
func listen(ctx context.Context, api *client, org string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
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
	child, err := newGroup(ctx, api, group, "heard")
	if err != nil {
		return 0, err
	}

	// A subscription hears its own creation first.
	wanted := []struct{ kind, subject string }{
		{"dev.chainguard.api.events.subscription.created.v1", subscription},
		{"dev.chainguard.api.iam.group.created.v1", child},
	}
	for _, want := range wanted {
		select {
		case event := <-events:
			if event.Type() != want.kind || event.Subject() != want.subject {
				return 0, fmt.Errorf("got %s about %s, not %s about %s", event.Type(), event.Subject(), want.kind, want.subject)
			}
			if err := checkEvent(event, api.server.String(), subscription); err != nil {
				return 0, err
			}
		case <-ctx.Done():
			return 0, fmt.Errorf("%s never came", want.kind)
		}
	}
	return len(wanted), forge(ctx, sink, <-r.copies)
}

// subscribe answers the subscription, and its secret, which travels beside the answer this once.
func subscribe(ctx context.Context, api *client, group, sink string) (string, string, error) {
	var header metadata.MD
	request := fields{"parent": group, "subscription": fields{"sink": sink}}
	made, err := api.call(ctx, "events.v2.SubscriptionsService", "CreateSubscription", request, grpc.Header(&header))
	if err != nil {
		return "", "", err
	}
	secret := header.Get("wharfinger-webhook-secret")
	if len(secret) != 1 {
		return "", "", errors.New("there is no secret beside the answer")
	}
	return made["uid"].(string), secret[0], nil
}

// start receives until the context ends; what does not verify never becomes an event.
func (r receiver) start(ctx context.Context, listener net.Listener) (<-chan cloudevents.Event, error) {
	protocol, err := cloudevents.NewHTTP(cehttp.WithListener(listener), cehttp.WithPath("/hook"), cehttp.WithMiddleware(r.verified))
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

func (r receiver) verified(next http.Handler) http.Handler {
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
		kept := request.Clone(context.Background())
		kept.Body = io.NopCloser(bytes.NewReader(body))
		r.copies <- kept
		next.ServeHTTP(w, request)
	})
}

func (r receiver) verify(request *http.Request, body []byte) error {
	if err := r.webhook.Verify(body, request.Header); err != nil {
		return err
	}
	raw, ok := strings.CutPrefix(request.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return errors.New("there is no token")
	}
	token, err := r.tokens.Verify(request.Context(), raw)
	if err != nil {
		return err
	}
	if token.Subject != "webhook:"+r.group {
		return fmt.Errorf("the token is for %s", token.Subject)
	}
	var claims struct {
		Webhook struct{ Digest string }
	}
	if err := token.Claims(&claims); err != nil {
		return err
	}
	if sum := sha256.Sum256(body); claims.Webhook.Digest != "sha256:"+hex.EncodeToString(sum[:]) {
		return errors.New("the token is for another body")
	}
	return nil
}

func checkEvent(event cloudevents.Event, source, subscription string) error {
	if err := event.Validate(); err != nil {
		return err
	}
	if event.Source() != source || event.Extensions()["chainguarddev1subscription"] != subscription {
		return fmt.Errorf("%s comes from %s for %v", event.Type(), event.Source(), event.Extensions()["chainguarddev1subscription"])
	}
	var data struct {
		Actor struct{ Subject string }
		Body  struct{ UID string }
	}
	if err := event.DataAs(&data); err != nil {
		return err
	}
	if data.Actor.Subject == "" || data.Body.UID != event.Subject() {
		return fmt.Errorf("%s says %+v", event.Type(), data)
	}
	return nil
}

// forge sends what came once more with one letter changed, which must not pass: else nothing was verified above.
func forge(ctx context.Context, sink string, came *http.Request) error {
	body, err := io.ReadAll(came.Body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, sink, bytes.NewReader(bytes.ToUpper(body)))
	if err != nil {
		return err
	}
	request.Header = came.Header
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusForbidden {
		return fmt.Errorf("a forged event was answered %s", response.Status)
	}
	return nil
}
