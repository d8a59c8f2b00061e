package main

import (
	"context"
	"fmt"
	"time"

	"chainguard.dev/sdk/auth"
	"chainguard.dev/sdk/sts"
	"golang.org/x/oauth2"
)

// exchange turns a token into one of the server's own and renews it, over gRPC and over HTTP/1, and answers one that a
// source of tokens got.
func exchange(ctx context.Context, server, token string) (string, error) {
	exchangers := map[string]sts.Exchanger{
		"gRPC":   sts.New(server, server, sts.WithUserAgent(userAgent)),
		"HTTP/1": sts.NewHTTP1DowngradeExchanger(server, server, sts.WithUserAgent(userAgent)),
	}
	for wire, exchanger := range exchangers {
		if err := renew(ctx, server, token, exchanger); err != nil {
			return "", fmt.Errorf("over %s: %w", wire, err)
		}
	}
	base := oauth2.StaticTokenSource(&oauth2.Token{AccessToken: token})
	got, err := sts.NewContextTokenSource(ctx, base, exchangers["gRPC"]).Token()
	if err != nil {
		return "", err
	}
	return got.AccessToken, nil
}

func renew(ctx context.Context, server, token string, exchanger sts.Exchanger) error {
	pair, err := exchanger.Exchange(ctx, token)
	if err != nil {
		return fmt.Errorf("exchange: %w", err)
	}
	if err := checkToken(pair.AccessToken, server); err != nil {
		return fmt.Errorf("exchange: %w", err)
	}
	if expiry, err := auth.ExtractExpiry(pair.AccessToken); err != nil || !expiry.Equal(pair.Expiry) {
		return fmt.Errorf("exchange: the token ends %s, and its answer says %s (%v)", expiry, pair.Expiry, err)
	}
	fresh, refresh, err := exchanger.Refresh(ctx, pair.RefreshToken)
	if err != nil {
		return fmt.Errorf("renewal: %w", err)
	}
	if refresh == "" || refresh == pair.RefreshToken {
		return fmt.Errorf("renewal: there is no fresh refresh token")
	}
	return checkToken(fresh, server)
}

// checkToken reads a token the way the SDK does.
func checkToken(token, server string) error {
	issuer, subject, err := auth.ExtractIssuerAndSubject(token)
	if err != nil {
		return err
	}
	expiry, err := auth.ExtractExpiry(token)
	if err != nil {
		return err
	}
	if issuer != server || subject == "" || expiry.Before(time.Now()) {
		return fmt.Errorf("the token is of %s for %q until %s", issuer, subject, expiry)
	}
	return nil
}
