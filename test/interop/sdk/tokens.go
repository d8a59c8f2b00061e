package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"chainguard.dev/sdk/auth"
	"chainguard.dev/sdk/sts"
	"golang.org/x/oauth2"
)

// exchange exchanges a token for an access token over gRPC and over HTTP/1, and refreshes both. It returns the access token
// from a token source of the SDK.
func exchange(ctx context.Context, server, token string) (string, error) {
	byGRPC := sts.New(server, server, sts.WithUserAgent(userAgent))
	byHTTP := sts.NewHTTP1DowngradeExchanger(server, server, sts.WithUserAgent(userAgent))
	for _, exchanger := range []sts.Exchanger{byGRPC, byHTTP} {
		pair, err := exchanger.Exchange(ctx, token)
		if err == nil {
			err = checkPair(pair, server)
		}
		if err != nil {
			return "", fmt.Errorf("exchange by %T: %w", exchanger, err)
		}
		fresh, refresh, err := exchanger.Refresh(ctx, pair.RefreshToken)
		if err == nil {
			err = checkToken(fresh, server)
		}
		if err == nil && (refresh == "" || refresh == pair.RefreshToken) {
			err = errors.New("there is no new refresh token")
		}
		if err != nil {
			return "", fmt.Errorf("refresh by %T: %w", exchanger, err)
		}
	}
	base := oauth2.StaticTokenSource(&oauth2.Token{AccessToken: token})
	fromSource, err := sts.NewContextTokenSource(ctx, base, byGRPC).Token()
	if err != nil {
		return "", err
	}
	return fromSource.AccessToken, nil
}

func checkPair(pair sts.TokenPair, server string) error {
	if err := checkToken(pair.AccessToken, server); err != nil {
		return err
	}
	expiry, err := auth.ExtractExpiry(pair.AccessToken)
	if err == nil && expiry.Sub(pair.Expiry).Abs() > time.Second {
		err = fmt.Errorf("the token expires at %s, the response says %s", expiry, pair.Expiry)
	}
	return err
}

// checkToken checks the claims of a token as the SDK reads them.
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
		return fmt.Errorf("the token has issuer %s, subject %q and expiry %s", issuer, subject, expiry)
	}
	return nil
}
