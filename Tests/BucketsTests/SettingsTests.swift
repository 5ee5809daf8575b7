import Testing

@testable import Buckets

/// The settings of Amazon's tools, from their files and variables.
@Suite(.timeLimit(.minutes(15)))
struct SettingsTests {
    private static let credentials = """
        [other]
        aws_access_key_id = OTHER
        aws_secret_access_key = no
        [default]
        # keys
        aws_access_key_id=FILE
          aws_ignored = indented
        aws_secret_access_key = a/b=
        """
    private static let configuration = """
        [default]
        region = eu-north-1
        s3 =
            addressing_style = path
        endpoint_url = http://127.0.0.1:9000
        ca_bundle = /ca.pem
        [ profile  other ]
        region = ap-south-1
        """

    private func settings(_ variables: [String: String]) -> ObjectSettings {
        ObjectSettings(variable: { ["HOME": "/h"].merging(variables) { $1 }[$0] }) { path in
            switch path {
            case "/h/.aws/credentials": Array(Self.credentials.utf8)
            case "/h/.aws/config": Array(Self.configuration.utf8)
            default: nil
            }
        }
    }

    @Test func readsFiles() {
        let found = settings([:])
        #expect(found.credentials?.accessKey == "FILE")
        #expect(found.credentials?.secretKey == "a/b=")
        #expect(found.credentials?.sessionToken == nil)
        #expect(found.region == "eu-north-1")
        #expect(found.address == "http://127.0.0.1:9000")
        #expect(found.authorityFile == "/ca.pem")
        #expect(found.addressing == .path)
    }

    @Test func readsTheSettingsOfAProfile() {
        let found = settings(["AWS_PROFILE": "other"])
        #expect(found.profile == "other")
        #expect(found.credentials?.accessKey == "OTHER")
        #expect(found.region == "ap-south-1")
        #expect(found.address == nil)
    }

    /// The section of services has an endpoint for each service.
    @Test func readsTheEndpointOfAService() {
        let text = """
            [default]
            services = mine
            endpoint_url = http://all
            s3 =
              addressing_style = virtual
            [services other]
            s3 =
              endpoint_url = http://other
            [services mine]
            ec2 =
              endpoint_url = http://ec2
            s3 =
              endpoint_url = http://objects
              max_concurrent_requests = 3
            """
        let found = ObjectSettings(variable: { $0 == "HOME" ? "/h" : nil }) {
            $0 == "/h/.aws/config" ? Array(text.utf8) : nil
        }
        #expect(found.address == "http://objects")
        #expect(found.addressing == .host)
    }

    @Test func variablesComeFirst() {
        let found = settings([
            "AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "S", "AWS_SESSION_TOKEN": "T",
            "AWS_REGION": "us-west-2", "AWS_ENDPOINT_URL": "http://h", "AWS_CA_BUNDLE": "/c",
        ])
        #expect(found.credentials?.accessKey == "A")
        #expect(found.credentials?.sessionToken == "T")
        #expect(found.region == "us-west-2")
        #expect(found.address == "http://h")
        #expect(found.authorityFile == "/c")
        #expect(settings(["AWS_SHARED_CREDENTIALS_FILE": "/none"]).credentials == nil)
    }
}
