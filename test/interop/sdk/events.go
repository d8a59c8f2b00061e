package main

import (
	"context"
	"fmt"
	"net"
	"time"

	"chainguard.dev/sdk/events"
	"chainguard.dev/sdk/events/receiver"
	events2 "chainguard.dev/sdk/proto/chainguard/platform/events/v2"
	eventsBeta "chainguard.dev/sdk/proto/chainguard/platform/events/v2beta1"
	iamBeta "chainguard.dev/sdk/proto/chainguard/platform/iam/v2beta1"
	events1 "chainguard.dev/sdk/proto/platform/events/v1"
	iam1 "chainguard.dev/sdk/proto/platform/iam/v1"
	cloudevents "github.com/cloudevents/sdk-go/v2"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
)

// webhookTimeout is how long all events may take to arrive.
const webhookTimeout = 30 * time.Second

// subscriptions cannot be updated.
func subscriptions(a *api) kind {
	c1 := a.v1.IAM().Subscriptions()
	// The SDK's clients of v2 and v2beta1 do not include the events services, so they are created from the connection.
	from2, fromBeta := events2.NewClientsFromConnection(a.v1.Connection()), eventsBeta.NewClientsFromConnection(a.v1.Connection())
	c2, cb := from2.SubscriptionsService(), fromBeta.SubscriptionsService()
	sink := func(n int) string { return "https://hooks.example.com/" + nameOf(n) }
	v1 := v1Reader(c1.List, func(s *events1.Subscription) []any { return []any{s.Sink} })
	v1 = withWrites(v1, c1.Create, func(parent string, n int) *events1.CreateSubscriptionRequest {
		return &events1.CreateSubscriptionRequest{ParentId: parent, Subscription: &events1.Subscription{Sink: sink(n)}}
	}, c1.Delete)
	v2 := v2Reader(c2.GetSubscription, from2.ListSubscriptionsIter, func(s *events2.Subscription) []any { return []any{s.Sink} })
	v2 = withWrites(v2, c2.CreateSubscription, func(parent string, n int) *events2.CreateSubscriptionRequest {
		return &events2.CreateSubscriptionRequest{Parent: parent, Subscription: &events2.Subscription{Sink: sink(n)}}
	}, c2.DeleteSubscription)
	beta := v2beta1Reader(v2, cb.GetSubscription, fromBeta.ListSubscriptionsIter)
	beta = withV2beta1Writes(v2, beta, cb.CreateSubscription, cb.DeleteSubscription)
	return kind{name: "subscriptions", v1: v1, v2: v2, beta: beta}
}

// testWebhook subscribes to a group, creates a child group through each version, and checks the events that the receiver
// of the SDK verified. It returns the number of events.
func (a *api) testWebhook(ctx context.Context, org string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, webhookTimeout)
	defer cancel()
	group, err := a.newGroup(ctx, org, "sdk-webhook")
	if err != nil {
		return 0, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	received, err := receive(ctx, listener, a.server, group.Uid)
	if err != nil {
		return 0, err
	}
	sink := &events2.Subscription{Sink: fmt.Sprintf("http://%s/", listener.Addr())}
	subscription, err := events2.NewClientsFromConnection(a.v1.Connection()).SubscriptionsService().CreateSubscription(ctx, &events2.CreateSubscriptionRequest{Parent: group.Uid, Subscription: sink})
	if err != nil {
		return 0, err
	}
	byV1, err := a.v1.IAM().Groups().Create(ctx, &iam1.CreateGroupRequest{Parent: group.Uid, Group: &iam1.Group{Name: "by-v1"}})
	if err != nil {
		return 0, err
	}
	byV2, err := a.newGroup(ctx, group.Uid, "by-v2")
	if err != nil {
		return 0, err
	}
	request := &iamBeta.CreateGroupRequest{Parent: group.Uid, Group: &iamBeta.Group{Name: "by-v2beta1"}}
	byBeta, err := a.beta.IAM().GroupsService().CreateGroup(ctx, request)
	if err != nil {
		return 0, err
	}

	// A subscription first receives the event of its own creation.
	expected := []struct {
		subject string
		check   func(cloudevents.Event) error
	}{
		{subscription.Uid, func(cloudevents.Event) error { return nil }},
		{byV1.Id, func(event cloudevents.Event) error {
			body, err := events.BodyAs[*iam1.Group](event)
			return checkEqual(body.GetName(), byV1.Name, err)
		}},
		{byV2.Uid, func(event cloudevents.Event) error {
			body, err := events.BodyAs[*iam1.Group](event)
			return checkEqual(body.GetName(), byV2.Name, err)
		}},
		// Events of all versions have messages of v1.
		{byBeta.Uid, func(event cloudevents.Event) error {
			body, err := events.BodyAs[*iam1.Group](event)
			return checkEqual(body.GetName(), byBeta.Name, err)
		}},
	}
	for _, want := range expected {
		select {
		case event := <-received:
			if event.Subject() != want.subject || event.Extensions()[events.DeliverySubscriptionKey] != subscription.Uid {
				return 0, fmt.Errorf("%s has subject %s, want %s", event.Type(), event.Subject(), want.subject)
			}
			if err := want.check(event); err != nil {
				return 0, fmt.Errorf("%s: %w", event.Type(), err)
			}
		case <-ctx.Done():
			return 0, fmt.Errorf("no event with subject %s was received", want.subject)
		}
	}
	return len(expected), nil
}

// receive sends the events that the receiver of the SDK accepts to a channel, until the context ends.
func receive(ctx context.Context, listener net.Listener, server, group string) (<-chan cloudevents.Event, error) {
	received := make(chan cloudevents.Event, 10)
	handler, err := receiver.New(ctx, server, group, func(_ context.Context, event cloudevents.Event) error {
		received <- event
		return nil
	})
	if err != nil {
		return nil, err
	}
	// The receiver reads the token from the request, which only this middleware adds to the context.
	client, err := cloudevents.NewClientHTTP(cehttp.WithListener(listener), cehttp.WithRequestDataAtContextMiddleware())
	if err != nil {
		return nil, err
	}
	go func() { _ = client.StartReceiver(ctx, handler) }()
	return received, nil
}

func checkEqual(got, want string, err error) error {
	if err == nil && got != want {
		err = fmt.Errorf("got %q, want %q", got, want)
	}
	return err
}
