"""Tests the metadata stand-in with botocore's own readers of credentials."""

import unittest

from shared import Script

import botocore.credentials
import botocore.session
import botocore.utils

ROLE = "/latest/meta-data/iam/security-credentials/prefetch-role"
TTL = "X-aws-ec2-metadata-token-ttl-seconds"


class MetadataTests(unittest.TestCase):
    def setUp(self):
        self.metadata = Script(
            "metadata", "--access-key", "A", "--secret-key", "S", "--token", "T", "--expires",
            "1800")
        self.addCleanup(self.metadata.close)

    def load(self, provider):
        credentials = provider.load()
        return credentials and tuple(credentials.get_frozen_credentials())[:3]

    def test_instance(self):
        fetcher = botocore.utils.InstanceMetadataFetcher(
            num_attempts=1, config={"ec2_metadata_service_endpoint": self.metadata.values[
                "endpoint"] + "/", "ec2_metadata_v1_disabled": True})
        provider = botocore.credentials.InstanceMetadataProvider(fetcher)
        self.assertEqual(self.load(provider), ("A", "S", "T"))
        counts = self.metadata.control()["counts"]
        self.assertEqual(counts["PUT /latest/api/token"], 1)
        self.assertEqual(counts[f"GET {ROLE}"], 1)

    def test_container(self):
        values = self.metadata.values
        environment = {
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": values["container"],
            "AWS_CONTAINER_AUTHORIZATION_TOKEN": values["authorization"]}
        provider = botocore.credentials.ContainerProvider(environment)
        self.assertEqual(self.load(provider), ("A", "S", "T"))
        self.assertEqual(self.metadata.control()["counts"], {"GET /container": 1})

    def test_refusals(self):
        request = self.metadata.request
        self.assertEqual(request("GET", ROLE)[0].status, 401)
        headers = {"X-aws-ec2-metadata-token": "none"}
        self.assertEqual(request("GET", ROLE, headers=headers)[0].status, 401)
        self.assertEqual(request("PUT", "/latest/api/token")[0].status, 400)
        self.assertEqual(request("GET", "/container")[0].status, 401)
        token = request("PUT", "/latest/api/token", headers={TTL: "60"})[1].decode()
        headers["X-aws-ec2-metadata-token"] = token
        self.assertEqual(request("GET", ROLE, headers=headers)[0].status, 200)
        self.assertEqual(request("GET", ROLE + "2", headers=headers)[0].status, 404)

    def test_control(self):
        authorization = {"Authorization": self.metadata.values["authorization"]}
        self.metadata.control("POST", access_key="B", status=500)
        self.assertEqual(
            self.metadata.request("GET", "/container", headers=authorization)[0].status, 500)
        self.metadata.control("POST", status=None)
        _, body = self.metadata.request("GET", "/container", headers=authorization)
        self.assertIn(b'"AccessKeyId": "B"', body)
        self.assertEqual(self.metadata.control("DELETE")["counts"], {})
        with self.assertRaises(ValueError):
            self.metadata.control("POST", acess_key="B")


if __name__ == "__main__":
    unittest.main()
