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
	iam2 "chainguard.dev/sdk/proto/chainguard/platform/iam/v2"
	iamBeta "chainguard.dev/sdk/proto/chainguard/platform/iam/v2beta1"
	events1 "chainguard.dev/sdk/proto/platform/events/v1"
	iam1 "chainguard.dev/sdk/proto/platform/iam/v1"
	cloudevents "github.com/cloudevents/sdk-go/v2"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
)

// patience is how long an event may take to arrive.
const patience = 30 * time.Second

// subscriptions cannot change.
func subscriptions(a *api) kind {
	c1 := a.v1.IAM().Subscriptions()
	// Those of v2 and v2beta1 are not among their clients, but come from a connection.
	from2, fromBeta := events2.NewClientsFromConnection(a.v1.Connection()), eventsBeta.NewClientsFromConnection(a.v1.Connection())
	c2, cb := from2.SubscriptionsService(), fromBeta.SubscriptionsService()
	sink := func(n int) string { return "https://hooks.example.com/" + named(n) }
	v1 := early(c1.List, func(s *events1.Subscription) []any { return []any{s.Sink} })
	v1 = written(v1, c1.Create, func(parent string, n int) *events1.CreateSubscriptionRequest {
		return &events1.CreateSubscriptionRequest{ParentId: parent, Subscription: &events1.Subscription{Sink: sink(n)}}
	}, c1.Delete)
	v2 := late(c2.GetSubscription, from2.ListSubscriptionsIter, func(s *events2.Subscription) []any { return []any{s.Sink} })
	v2 = written(v2, c2.CreateSubscription, func(parent string, n int) *events2.CreateSubscriptionRequest {
		return &events2.CreateSubscriptionRequest{Parent: parent, Subscription: &events2.Subscription{Sink: sink(n)}}
	}, c2.DeleteSubscription)
	beta := readLike(v2, cb.GetSubscription, fromBeta.ListSubscriptionsIter)
	beta = writtenLike(v2, beta, cb.CreateSubscription, cb.DeleteSubscription)
	return kind{name: "subscriptions", v1: v1, v2: v2, beta: beta}
}

// listen subscribes to a group, changes something in it by each version, and answers how many events came through the
// SDK's receiver, which verifies them.
func (a *api) listen(ctx context.Context, org string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
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
	heard, err := receive(ctx, listener, a.server, group.Uid)
	if err != nil {
		return 0, err
	}
	sink := &events2.Subscription{Sink: fmt.Sprintf("http://%s/", listener.Addr())}
	subscription, err := events2.NewClientsFromConnection(a.v1.Connection()).SubscriptionsService().CreateSubscription(ctx, &events2.CreateSubscriptionRequest{Parent: group.Uid, Subscription: sink})
	if err != nil {
		return 0, err
	}
	one, err := a.v1.IAM().Groups().Create(ctx, &iam1.CreateGroupRequest{Parent: group.Uid, Group: &iam1.Group{Name: "by-v1"}})
	if err != nil {
		return 0, err
	}
	two, err := a.newGroup(ctx, group.Uid, "by-v2")
	if err != nil {
		return 0, err
	}
	request := &iamBeta.CreateGroupRequest{Parent: group.Uid, Group: &iamBeta.Group{Name: "by-v2beta1"}}
	beta, err := a.beta.IAM().GroupsService().CreateGroup(ctx, request)
	if err != nil {
		return 0, err
	}

	// A subscription hears its own creation first.
	wanted := []struct {
		subject string
		check   func(cloudevents.Event) error
	}{
		{subscription.Uid, func(cloudevents.Event) error { return nil }},
		{one.Id, func(event cloudevents.Event) error {
			body, err := events.BodyAs[*iam1.Group](event)
			return same(body.GetName(), one.Name, err)
		}},
		{two.Uid, func(event cloudevents.Event) error {
			body, err := events.BodyAs[*iam2.Group](event)
			return same(body.GetName(), two.Name, err)
		}},
		// Changes by v2beta1 are told in words of v2.
		{beta.Uid, func(event cloudevents.Event) error {
			body, err := events.BodyAs[*iam2.Group](event)
			return same(body.GetName(), beta.Name, err)
		}},
	}
	for _, want := range wanted {
		select {
		case event := <-heard:
			if event.Subject() != want.subject || event.Extensions()[events.DeliverySubscriptionKey] != subscription.Uid {
				return 0, fmt.Errorf("%s is about %s, and not %s", event.Type(), event.Subject(), want.subject)
			}
			if err := want.check(event); err != nil {
				return 0, fmt.Errorf("%s: %w", event.Type(), err)
			}
		case <-ctx.Done():
			return 0, fmt.Errorf("nothing came about %s", want.subject)
		}
	}
	return len(wanted), nil
}

// receive hands on what the SDK's receiver lets through until the context ends.
func receive(ctx context.Context, listener net.Listener, server, group string) (<-chan cloudevents.Event, error) {
	heard := make(chan cloudevents.Event, 10)
	handler, err := receiver.New(ctx, server, group, func(_ context.Context, event cloudevents.Event) error {
		heard <- event
		return nil
	})
	if err != nil {
		return nil, err
	}
	// The receiver looks for the token in the request, which the context has only when asked for.
	client, err := cloudevents.NewClientHTTP(cehttp.WithListener(listener), cehttp.WithRequestDataAtContextMiddleware())
	if err != nil {
		return nil, err
	}
	go func() { _ = client.StartReceiver(ctx, handler) }()
	return heard, nil
}

func same(got, want string, err error) error {
	if err == nil && got != want {
		err = fmt.Errorf("it says %q, and not %q", got, want)
	}
	return err
}
