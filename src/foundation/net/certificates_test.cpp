#include "net/certificates.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "os/files.hpp"
#include "os/machine_clock.hpp"
#include "os/process.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::net {
namespace {

struct Certificates : testing::Test {
  os::TemporaryDirectory directory;
  const Instant now = os::MachineClock().now();
  const std::vector<std::string> names = {"localhost", "127.0.0.1", "::1", "yard.example"};

  CertificatePaths ensure(const std::vector<std::string>& wanted, Instant when) {
    auto paths = ensure_certificates(directory.path() + "/tls", wanted, when);
    EXPECT_TRUE(paths) << paths.error().message;
    return *paths;
  }

  // Runs the openssl program, which verifies the certificates independently of the library.
  os::Outcome openssl(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "openssl");
    return os::run({.arguments = arguments}).value();
  }
  bool verifies(const CertificatePaths& paths, const std::string& flag, const std::string& name) {
    return openssl({"verify", "-x509_strict", "-purpose", "sslserver", "-CAfile", paths.authority,
                    flag, name, paths.certificate})
               .code == 0;
  }
};

unsigned mode_of(const std::string& path) {
  struct stat status = {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0);
  return status.st_mode & 0777;
}

TEST_F(Certificates, ReadsNamesAndExpiry) {
  const auto facts = read_certificate(ensure(names, now).certificate);
  ASSERT_TRUE(facts) << facts.error().message;
  EXPECT_EQ(facts->names, names);
  EXPECT_GT(facts->ends, now + std::chrono::hours(24 * 396));
  EXPECT_LE(facts->ends, now + std::chrono::hours(24 * 397));
  const std::string other = directory.path() + "/other.pem";
  ASSERT_TRUE(os::write_file(other, "no certificate"));
  EXPECT_EQ(read_certificate(other).error().kind, Kind::corrupt);
}

TEST_F(Certificates, ChainPassesStrictVerificationForEachName) {
  const CertificatePaths paths = ensure(names, now);
  EXPECT_TRUE(verifies(paths, "-verify_hostname", "localhost"));
  EXPECT_TRUE(verifies(paths, "-verify_hostname", "yard.example"));
  EXPECT_TRUE(verifies(paths, "-verify_ip", "127.0.0.1"));
  EXPECT_TRUE(verifies(paths, "-verify_ip", "::1"));
  EXPECT_FALSE(verifies(paths, "-verify_hostname", "elsewhere.example"));
  EXPECT_FALSE(verifies(paths, "-verify_ip", "127.0.0.2"));
  EXPECT_EQ(mode_of(paths.key), 0600u);
  EXPECT_EQ(mode_of(paths.authority_key), 0600u);

  const std::string text = openssl({"x509", "-noout", "-text", "-in", paths.certificate}).output;
  for (const char* part :
       {"Authority Key Identifier", "Subject Key Identifier", "TLS Web Server Authentication",
        "CA:FALSE", "prime256v1", "IP Address:127.0.0.1", "DNS:yard.example"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  const std::string authority = openssl({"x509", "-noout", "-text", "-in", paths.authority}).output;
  for (const char* part : {"CA:TRUE, pathlen:0", "Certificate Sign, CRL Sign"})
    EXPECT_NE(authority.find(part), std::string::npos) << part << "\n" << authority;
}

TEST_F(Certificates, IssuesCertificatesToClients) {
  const CertificatePaths paths = ensure(names, now);
  const auto authority = open_client_certificates(paths);
  ASSERT_TRUE(authority) << authority.error().message;
  const auto issued = (*authority)->issue("agent of j7a1", now);
  ASSERT_TRUE(issued) << issued.error().message;
  EXPECT_EQ(issued->authority, *os::read_file(paths.authority));
  EXPECT_NE(issued->key, (*authority)->issue("agent of j7a1", now)->key);
  const std::string file = directory.path() + "/client.pem";
  ASSERT_TRUE(os::write_file(file, issued->certificate));
  const auto verify = [&](const std::string& purpose) {
    return openssl(
               {"verify", "-x509_strict", "-purpose", purpose, "-CAfile", paths.authority, file})
        .code;
  };
  EXPECT_EQ(verify("sslclient"), 0);
  EXPECT_NE(verify("sslserver"), 0);
  const std::string text = openssl({"x509", "-noout", "-text", "-in", file}).output;
  EXPECT_NE(text.find("CN = agent of j7a1"), std::string::npos) << text;
  // A job may run for longer than the server's certificate.
  EXPECT_EQ(read_certificate(file)->ends, read_certificate(paths.authority)->ends);
  EXPECT_EQ((*authority)->issue(std::string(65, 'x'), now).error().kind, Kind::internal);
  ASSERT_TRUE(os::write_file(paths.authority_key, "garbage"));
  EXPECT_EQ(open_client_certificates(paths).error().kind, Kind::corrupt);
}

TEST_F(Certificates, KeepsValidFiles) {
  const CertificatePaths paths = ensure(names, now);
  const std::string before = *os::read_file(paths.certificate);
  ensure(names, now + 24h * 300);
  ensure({"localhost"}, now);
  EXPECT_EQ(*os::read_file(paths.certificate), before);
}

TEST_F(Certificates, RenewsTheServersCertificateAndKeepsTheAuthority) {
  const CertificatePaths paths = ensure(names, now);
  const std::string authority = *os::read_file(paths.authority);
  const std::string first = *os::read_file(paths.certificate);

  ensure({"localhost", "new.example"}, now);
  const std::string second = *os::read_file(paths.certificate);
  EXPECT_NE(second, first);
  EXPECT_TRUE(verifies(paths, "-verify_hostname", "new.example"));

  ensure({"localhost"}, now + 24h * 368);
  const std::string third = *os::read_file(paths.certificate);
  EXPECT_NE(third, second) << "29 days before its end";

  ASSERT_TRUE(os::write_file(paths.key, "not a key"));
  ensure({"localhost"}, now);
  EXPECT_TRUE(verifies(paths, "-verify_hostname", "localhost"));
  EXPECT_EQ(*os::read_file(paths.authority), authority);
}

TEST_F(Certificates, RecoversFromACrashBetweenKeyAndCertificate) {
  const CertificatePaths paths = ensure(names, now);
  ASSERT_TRUE(os::remove_all(paths.certificate));
  ASSERT_TRUE(os::remove_all(paths.authority));
  ensure(names, now);
  EXPECT_TRUE(verifies(paths, "-verify_ip", "127.0.0.1"));
}

TEST_F(Certificates, ReportsABrokenAuthorityAndKeepsIt) {
  const CertificatePaths paths = ensure(names, now);
  ASSERT_TRUE(os::write_file(paths.authority, "garbage"));
  const auto broken = ensure_certificates(directory.path() + "/tls", names, now);
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().kind, Kind::corrupt);
  EXPECT_EQ(*os::read_file(paths.authority), "garbage");
}

TEST_F(Certificates, RejectsInvalidNames) {
  for (const std::string name : {"a,IP:1.2.3.4", "", "with blank", "a\nb"})
    EXPECT_EQ(ensure_certificates(directory.path() + "/tls", {name}, now).error().kind,
              Kind::invalid)
        << name;
  EXPECT_EQ(ensure_certificates(directory.path() + "/tls", {}, now).error().kind, Kind::invalid);
}

}  // namespace
}  // namespace trainyard::net
