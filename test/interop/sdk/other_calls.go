package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"chainguard.dev/sdk/auth"
	advisory2 "chainguard.dev/sdk/proto/chainguard/platform/advisory/v2"
	iam2 "chainguard.dev/sdk/proto/chainguard/platform/iam/v2"
	libraries2 "chainguard.dev/sdk/proto/chainguard/platform/libraries/v2"
	ping2 "chainguard.dev/sdk/proto/chainguard/platform/ping/v2"
	pingBeta "chainguard.dev/sdk/proto/chainguard/platform/ping/v2beta1"
	"chainguard.dev/sdk/proto/platform"
	advisory "chainguard.dev/sdk/proto/platform/advisory/v1"
	iam1 "chainguard.dev/sdk/proto/platform/iam/v1"
	libraries "chainguard.dev/sdk/proto/platform/libraries/v1"
	ping1 "chainguard.dev/sdk/proto/platform/ping/v1"
	registry "chainguard.dev/sdk/proto/platform/registry/v1"
	vulnerabilities "chainguard.dev/sdk/proto/platform/vulnerabilities/v1"
	"chainguard.dev/sdk/uidp"
	"google.golang.org/protobuf/types/known/emptypb"
)

// fixedCVE is the alias of an advisory with a fixed event.
const fixedCVE = "CVE-2026-4321"

// testOtherCalls calls the methods that are not part of the lifecycle of a resource, and returns the number of calls.
func (a *api) testOtherCalls(ctx context.Context, org string) (int, error) {
	group, err := a.newGroup(ctx, org, "sdk-other-calls")
	if err != nil {
		return 0, err
	}
	repo, err := a.newRepoWithImage(ctx, group)
	if err != nil {
		return 0, err
	}
	if err := a.importData(ctx, group.Uid, repo); err != nil {
		return 0, err
	}
	calls := []struct {
		name string
		// isRight calls a method and returns whether the response is right.
		isRight func() (bool, error)
	}{
		{"v1 ping", func() (bool, error) {
			response, err := a.v1.Ping().Ping().Ping(ctx, &ping1.PingRequest{})
			return response.GetResponse() == "pong", err
		}},
		{"v2 ping", func() (bool, error) {
			response, err := ping2.NewClientsFromConnection(a.v1.Connection()).PingService().Ping(ctx, &ping2.PingRequest{})
			return response.GetResponse() == "pong", err
		}},
		{"v2beta1 ping", func() (bool, error) {
			response, err := pingBeta.NewClientsFromConnection(a.v1.Connection()).PingService().Ping(ctx, &pingBeta.PingRequest{})
			return response.GetResponse() == "pong", err
		}},
		{"identity of the caller", func() (bool, error) { return a.validatesCaller(ctx) }},
		{"identity by login", func() (bool, error) {
			found, err := a.v1.IAM().Identities().Lookup(ctx, &iam1.LookupRequest{Issuer: issuer, Subject: "unknown"})
			return uidp.Valid(found.GetId()), err
		}},
		{"identity by login in v2", func() (bool, error) {
			request := &iam2.LookupIdentityRequest{Issuer: issuer, Subject: "unknown"}
			found, err := a.v2.IAM().IdentitiesService().LookupIdentity(ctx, request)
			return uidp.Valid(found.GetUid()), err
		}},
		{"several bindings at once", func() (bool, error) {
			pair := []*iam1.RoleBinding{{Identity: a.identity, Role: a.roles[0]}, {Identity: a.identity, Role: a.roles[1]}}
			request := &iam1.CreateRoleBindingBatchRequest{Parent: group.Uid, RoleBindings: pair}
			response, err := a.v1.IAM().RoleBindings().CreateBatch(ctx, request)
			return len(response.GetRoleBindings()) == len(pair), err
		}},
		{"roles by name", func() (bool, error) {
			found, err := a.v2.IAM().ListRolesAll(ctx, &iam2.ListRolesRequest{Name: "viewer"})
			return len(found) == 1, err
		}},
		{"events of an advisory", func() (bool, error) { return createsAdvisoryEvent(ctx, a.v1.Vulnerabilities().Advisories(), group.Uid) }},
		{"advisory documents", func() (bool, error) {
			found, err := a.v1.Advisory().SecurityAdvisory().ListDocuments(ctx, &advisory.DocumentFilter{Cves: []string{fixedCVE}})
			return len(found.GetItems()) == 1 && len(found.Items[0].Advisories[0].Events) == 1, err
		}},
		{"advisory documents in v2", func() (bool, error) {
			request := &advisory2.ListDocumentsRequest{Cves: []string{fixedCVE}}
			found, err := a.v2.Advisory().SecurityAdvisoryService().ListDocuments(ctx, request)
			return len(found.GetDocuments()) == 1 && len(found.Documents[0].Advisories[0].Events) == 1, err
		}},
		{"vulnerability metadata", func() (bool, error) {
			filter := &advisory.VulnerabilityMetadataFilter{Ids: []string{vulnerability}}
			found, err := a.v1.Advisory().SecurityAdvisory().ListVulnerabilityMetadata(ctx, filter)
			return len(found.GetItems()) == 1 && found.Items[0].Id == vulnerability, err
		}},
		{"vulnerability metadata in v2", func() (bool, error) {
			request := &advisory2.ListVulnerabilityMetadataRequest{Ids: []string{vulnerability}}
			found, err := a.v2.Advisory().ListVulnerabilityMetadataAll(ctx, request)
			return len(found) == 1 && found[0].Id == vulnerability, err
		}},
		{"library artifacts", func() (bool, error) {
			found, err := a.v1.Libraries().Artifacts().List(ctx, &libraries.ArtifactFilter{Query: library})
			return len(found.GetItems()) == 1 && found.Items[0].Ecosystem == libraries.Ecosystem_PYTHON, err
		}},
		{"library artifacts in v2", func() (bool, error) {
			request := &libraries2.ListArtifactsRequest{Ecosystems: []libraries2.Ecosystem{libraries2.Ecosystem_ECOSYSTEM_PYTHON}}
			found, err := libraries2.NewClientsFromConnection(a.v1.Connection()).ListArtifactsAll(ctx, request)
			return len(found) == 1 && found[0].Name == library, err
		}},
		{"count of library artifacts", func() (bool, error) {
			response, err := a.v1.Libraries().Artifacts().GetArtifactCount(ctx, &libraries.GetArtifactCountRequest{})
			return slices.ContainsFunc(response.GetCounts(), func(each *libraries.GetArtifactCountResponse_Count) bool {
				return each.Ecosystem == libraries.Ecosystem_PYTHON && each.TotalArtifacts == 1
			}), err
		}},
		{"vulnerability reports", func() (bool, error) {
			filter := &registry.VulnReportFilter{RepoId: repo, Digest: imageDigest()}
			found, err := a.v1.Registry().Vulnerabilities().ListVulnReports(ctx, filter)
			return len(found.GetItems()) == 1 && found.Items[0].Vulnerabilities[0].Id == vulnerability, err
		}},
		{"manifests", func() (bool, error) {
			response, err := a.v1.Registry().Registry().GetManifestDigestCount(ctx, &registry.ManifestDigestCountFilter{ParentId: repo})
			return response.GetCount() == 1, err
		}},
	}
	for _, call := range calls {
		right, err := call.isRight()
		if err == nil && !right {
			err = errors.New("the response is wrong")
		}
		if err != nil {
			return 0, fmt.Errorf("%s: %w", call.name, err)
		}
	}
	return len(calls), nil
}

// validatesCaller calls Validate with the OIDC clients of the SDK.
func (a *api) validatesCaller(ctx context.Context) (bool, error) {
	clients, err := platform.NewOIDCClients(ctx, a.server, auth.NewFromToken(ctx, "Bearer "+a.token, false))
	if err != nil {
		return false, err
	}
	defer clients.Close()
	caller, err := clients.Auth().Validate(ctx, &emptypb.Empty{})
	if err != nil {
		return false, err
	}
	_, subject, err := auth.ExtractIssuerAndSubject(a.token)
	return caller.Subject == subject && len(caller.Capabilities) > 0, err
}

// createsAdvisoryEvent creates an advisory with an event, and returns whether the event is listed.
func createsAdvisoryEvent(ctx context.Context, advisories vulnerabilities.AdvisoriesClient, group string) (bool, error) {
	advisory := &vulnerabilities.Advisory{ArtifactName: "sdk", Aliases: []string{fixedCVE}}
	created, err := advisories.Create(ctx, &vulnerabilities.CreateAdvisoryRequest{ParentId: group, Advisory: advisory})
	if err != nil {
		return false, err
	}
	event := &vulnerabilities.AdvisoryEvent{
		Type: &vulnerabilities.AdvisoryEvent_Fixed_{Fixed: &vulnerabilities.AdvisoryEvent_Fixed{FixedVersion: "1.2.3"}},
	}
	if _, err := advisories.CreateAdvisoryEvent(ctx, &vulnerabilities.CreateAdvisoryEventRequest{ParentId: created.Id, AdvisoryEvent: event}); err != nil {
		return false, err
	}
	found, err := advisories.ListAdvisoryEvents(ctx, &vulnerabilities.AdvisoryEventFilter{ParentId: created.Id})
	return len(found.GetItems()) == 1 && found.GetItems()[0].GetFixed().GetFixedVersion() == "1.2.3", err
}
