"""Calls a server with Python's gRPC, knowing nothing but what the reflection service returns.

Loads every service of v1, v2beta1 and v2 into Python's descriptor pool, which validates each file,
resolves all their messages, and then manages a group in each version.
"""

import os
import sys
from urllib.parse import urlparse

import grpc
from google.protobuf import descriptor_pool, json_format, message_factory
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

URL, TOKEN, ORGANIZATION = (os.environ[name] for name in ("WHARF_URL", "WHARF_TOKEN", "WHARF_ORG"))
TIMEOUT = 30

# The smallest numbers of methods of each version. The contract tests compare the methods one by one.
EXPECTED = {"v1": 148, "v2beta1": 78, "v2": 78}


def version_of(service: str) -> str:
    """Returns the version of a service, or an empty text if it is not a service of the platform."""
    if not service.startswith("chainguard.platform."):
        return ""
    version = service.split(".")[-2]
    return version if version in ("v2", "v2beta1") else "v1"


def all_fields(descriptor, seen):
    """Resolves a message and every message that its fields refer to."""
    if descriptor.full_name in seen:
        return
    seen.add(descriptor.full_name)
    message_factory.GetMessageClass(descriptor)
    for field in descriptor.fields:
        if field.message_type is not None:
            all_fields(field.message_type, seen)


class Client:
    def __init__(self, channel):
        self.channel = channel
        database = ProtoReflectionDescriptorDatabase(channel)
        self.pool = descriptor_pool.DescriptorPool(database)
        self.services = sorted(database.get_services())

    def load(self) -> dict:
        """Loads all services. Returns the number of methods of each version."""
        counts = dict.fromkeys(EXPECTED, 0)
        messages = set()
        for name in self.services:
            service = self.pool.FindServiceByName(name)
            for method in service.methods:
                all_fields(method.input_type, messages)
                all_fields(method.output_type, messages)
            if version_of(name):
                counts[version_of(name)] += len(service.methods)
        print(f"python: {len(self.services)} services, {len(messages)} messages, methods: {counts}")
        return counts

    def call(self, method: str, request: dict) -> dict:
        """Calls `service/Method` with a request in its JSON form."""
        service, name = method.split("/")
        descriptor = self.pool.FindServiceByName(service).methods_by_name[name]
        request_class = message_factory.GetMessageClass(descriptor.input_type)
        response_class = message_factory.GetMessageClass(descriptor.output_type)
        stub = self.channel.unary_unary(
            f"/{method}",
            request_serializer=request_class.SerializeToString,
            response_deserializer=response_class.FromString,
        )
        message = json_format.ParseDict(request, request_class(), descriptor_pool=self.pool)
        metadata = [("authorization", f"Bearer {TOKEN}")]
        response = stub(message, metadata=metadata, timeout=TIMEOUT)
        return json_format.MessageToDict(response, descriptor_pool=self.pool)


def equal(actual, expected, what: str) -> None:
    if actual != expected:
        sys.exit(f"python: FAILED: {what}: {actual!r} instead of {expected!r}")


def refused(call, code, what: str) -> None:
    try:
        call()
    except grpc.RpcError as error:
        equal(error.code(), code, what)
    else:
        sys.exit(f"python: FAILED: {what}: the call succeeded")


def manage_group(client: Client, version: str) -> None:
    """Creates, reads, lists, changes and deletes a group in v2 or v2beta1."""
    groups = f"chainguard.platform.iam.{version}.GroupsService"
    name = f"python {version}"
    made = client.call(f"{groups}/CreateGroup", {"parent": ORGANIZATION, "group": {"name": name}})
    uid = made["uid"]
    equal(client.call(f"{groups}/GetGroup", {"uid": uid}), made, f"{version}: the group")
    listed = client.call(f"{groups}/ListGroups", {"uidp": {"childrenOf": ORGANIZATION}, "name": name})
    equal([group["uid"] for group in listed["groups"]], [uid], f"{version}: the list")
    change = {"group": {"uid": uid, "description": "changed"}, "updateMask": "description"}
    changed = client.call(f"{groups}/UpdateGroup", change)
    equal((changed["name"], changed["description"]), (name, "changed"), f"{version}: the change")
    client.call(f"{groups}/DeleteGroup", {"uid": uid})
    refused(lambda: client.call(f"{groups}/GetGroup", {"uid": uid}), grpc.StatusCode.NOT_FOUND, f"{version}: deleted")
    ping = client.call(f"chainguard.platform.ping.{version}.PingService/Ping", {})
    equal(bool(ping), True, f"{version}: ping")


def manage_group_v1(client: Client) -> None:
    groups = "chainguard.platform.iam.Groups"
    made = client.call(f"{groups}/Create", {"parent": ORGANIZATION, "group": {"name": "python v1"}})
    listed = client.call(f"{groups}/List", {"uidp": {"childrenOf": ORGANIZATION}})
    equal([group["id"] for group in listed["items"] if group["name"] == "python v1"], [made["id"]], "v1: the list")
    changed = client.call(f"{groups}/Update", {"id": made["id"], "name": "python v1", "description": "changed"})
    equal(changed["description"], "changed", "v1: the change")
    client.call(f"{groups}/Delete", {"id": made["id"]})
    listed = client.call(f"{groups}/List", {"uidp": {"childrenOf": ORGANIZATION}})
    equal([group for group in listed.get("items", []) if group["id"] == made["id"]], [], "v1: deleted")


def main() -> None:
    with grpc.insecure_channel(urlparse(URL).netloc) as channel:
        client = Client(channel)
        counts = client.load()
        for version, least in EXPECTED.items():
            if counts[version] < least:
                sys.exit(f"python: FAILED: {counts[version]} methods of {version}, expected at least {least}")
        for version in ("v2", "v2beta1"):
            manage_group(client, version)
            print(f"python: {version} ok")
        manage_group_v1(client)
        print("python: v1 ok")


main()
