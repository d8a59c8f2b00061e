package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// exchange exchanges a token for an access token over gRPC and over HTTP/1, refreshes it, and returns the refreshed access
// token.
func exchange(ctx context.Context, server url.URL, token string) (string, error) {
	api, err := dial(ctx, server, token)
	if err != nil {
		return "", err
	}
	defer api.close()
	byGRPC, err := api.call(ctx, "oidc.SecurityTokenService", "Exchange", fields{"aud": []string{server.String()}})
	if err != nil {
		return "", fmt.Errorf("exchange over gRPC: %w", err)
	}
	if err := checkToken(byGRPC["token"], server); err != nil {
		return "", fmt.Errorf("exchange over gRPC: %w", err)
	}
	byHTTP, err := post(ctx, server, "/sts/exchange", token, url.Values{"aud": {server.String()}})
	if err != nil {
		return "", fmt.Errorf("exchange over HTTP/1: %w", err)
	}
	if err := checkToken(byHTTP["token"], server); err != nil {
		return "", fmt.Errorf("exchange over HTTP/1: %w", err)
	}
	refresh, ok := byHTTP["refreshToken"].(string)
	if !ok {
		return "", errors.New("the exchange over HTTP/1 returned no refresh token")
	}
	refreshed, err := post(ctx, server, "/sts/exchange_refresh_token", refresh, url.Values{"aud": {server.String()}})
	if err != nil {
		return "", fmt.Errorf("refresh over HTTP/1: %w", err)
	}
	pair, _ := refreshed["token"].(fields)
	if err := checkToken(pair["token"], server); err != nil {
		return "", fmt.Errorf("refresh over HTTP/1: %w", err)
	}
	return pair["token"].(string), nil
}

// post sends a form and returns the response. A redirect, or any status other than 200, is an error.
func post(ctx context.Context, server url.URL, path, token string, form url.Values) (fields, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, server.JoinPath(path).String(), strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	noRedirects := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := noRedirects.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", response.Status, body)
	}
	result := fields{}
	return result, json.Unmarshal(body, &result)
}

// checkToken checks the claims of a token as Go clients read them: exp must be an integer.
func checkToken(value any, server url.URL) error {
	token, _ := value.(string)
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return fmt.Errorf("want a JWT, got %T", value)
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return err
	}
	var claims struct {
		Exp int64  `json:"exp"`
		Iss string `json:"iss"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		return err
	}
	if claims.Exp == 0 || claims.Iss != server.String() {
		return fmt.Errorf("the token has exp %d and iss %s", claims.Exp, claims.Iss)
	}
	return nil
}
