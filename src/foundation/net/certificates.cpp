#include "net/certificates.hpp"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <cctype>
#include <ctime>
#include <memory>

#include "base/text.hpp"
#include "net/openssl_support.hpp"
#include "os/files.hpp"
#include "os/machine_clock.hpp"

namespace trainyard::net {
namespace {

// Clients receive the authority only once, so it is valid for long; its certificates need not be.
constexpr auto kAuthorityLifetime = std::chrono::hours(24 * 3650);
constexpr auto kServerLifetime = std::chrono::hours(24 * 397);
constexpr auto kRenewBefore = std::chrono::hours(24 * 30);
// A new certificate is valid from before now, for clients whose clock is behind.
constexpr auto kBackdated = std::chrono::hours(24);
// 128 bits, so that serials of an authority never collide; RFC 5280 allows 20 bytes.
constexpr size_t kSerialBytes = 16;
constexpr size_t kPemBytesMax = 1 << 20;

using Extension = std::unique_ptr<X509_EXTENSION, Freer<X509_EXTENSION_free>>;
using Names = std::unique_ptr<GENERAL_NAMES, Freer<GENERAL_NAMES_free>>;

Error openssl_error(std::string_view doing) {
  char words[256] = "no reason given";
  if (const unsigned long code = ERR_get_error(); code != 0)
    ERR_error_string_n(code, words, sizeof words);
  ERR_clear_error();
  return internal(std::string(doing) + ": " + words);
}

struct Identity {
  Key key;
  Certificate certificate;
};

// -- PEM ------------------------------------------------------------------------------------------

Result<std::string> text_of(const Bio& bio) {
  char* data = nullptr;
  const long length = BIO_get_mem_data(bio.get(), &data);
  if (length <= 0) return openssl_error("writing PEM");
  return std::string(data, size_t(length));
}

Result<std::string> certificate_text(const Certificate& certificate) {
  const Bio bio(BIO_new(BIO_s_mem()));
  if (!PEM_write_bio_X509(bio.get(), certificate.get())) return openssl_error("writing PEM");
  return text_of(bio);
}

Result<std::string> key_text(const Key& key) {
  const Bio bio(BIO_new(BIO_s_mem()));
  if (!PEM_write_bio_PrivateKey(bio.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr))
    return openssl_error("writing PEM");
  return text_of(bio);
}

Result<void> write_identity(const Identity& identity, const std::string& key_path,
                            const std::string& path) {
  // Writes the key first, so that a certificate always has its key, even after a crash.
  TRY(os::write_file_durably(key_path, TRY(key_text(identity.key)), 0600));
  return os::write_file_durably(path, TRY(certificate_text(identity.certificate)), 0644);
}

Result<Identity> read_identity(const std::string& key_path, const std::string& path) {
  const std::string key_text = TRY(os::read_file(key_path, kPemBytesMax));
  const std::string text = TRY(os::read_file(path, kPemBytesMax));
  const Bio key_bio(BIO_new_mem_buf(key_text.data(), int(key_text.size())));
  const Bio bio(BIO_new_mem_buf(text.data(), int(text.size())));
  // Prevents OpenSSL from prompting at the terminal for the passphrase of a key.
  const auto no_passphrase = [](char*, int, int, void*) { return -1; };
  Identity identity;
  identity.key.reset(PEM_read_bio_PrivateKey(key_bio.get(), nullptr, no_passphrase, nullptr));
  identity.certificate.reset(PEM_read_bio_X509(bio.get(), nullptr, no_passphrase, nullptr));
  if (!identity.key || !identity.certificate) {
    Error error = openssl_error("reading " + (identity.key ? path : key_path));
    error.kind = Kind::corrupt;
    return error;
  }
  if (X509_check_private_key(identity.certificate.get(), identity.key.get()) != 1) {
    ERR_clear_error();
    return corrupt("reading " + path + ": " + key_path + " is not its key");
  }
  return identity;
}

// -- making ---------------------------------------------------------------------------------------

time_t seconds(Instant instant) { return time_t(to_milliseconds(instant) / 1000); }

bool add_extension(X509* certificate, X509V3_CTX& context, int kind, const char* value) {
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, kind, value));
  return extension && X509_add_ext(certificate, extension.get(), -1);
}

bool is_dns_name(std::string_view name) {
  return !name.empty() && name.size() <= 253 && std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' || c == '_';
  });
}

Result<Names> general_names(const std::vector<std::string>& names) {
  Names all(GENERAL_NAMES_new());
  for (const std::string& name : names) {
    GENERAL_NAME* one = GENERAL_NAME_new();
    if (!sk_GENERAL_NAME_push(all.get(), one)) return openssl_error("naming " + name);
    if (ASN1_OCTET_STRING* address = a2i_IPADDRESS(name.c_str())) {
      GENERAL_NAME_set0_value(one, GEN_IPADD, address);
    } else if (is_dns_name(name)) {
      ASN1_IA5STRING* text = ASN1_IA5STRING_new();
      ASN1_STRING_set(text, name.data(), int(name.size()));
      GENERAL_NAME_set0_value(one, GEN_DNS, text);
    } else {
      return invalid("making a certificate: invalid name '" + shorten(name, 64) +
                     "': neither a DNS name nor an address");
    }
  }
  ERR_clear_error();  // names that are not addresses cause errors
  return all;
}

// Makes a certificate with a new key, without extensions and signature. If `issuer` is null, it is
// for a self-signed certificate.
Result<Identity> make_unsigned(const std::string& name, const X509* issuer, Instant from,
                               Instant until) {
  Identity made;
  made.key.reset(EVP_EC_gen("P-256"));
  made.certificate.reset(X509_new());
  if (!made.key || !made.certificate) return openssl_error("making a key");
  X509* certificate = made.certificate.get();

  unsigned char serial[kSerialBytes];
  os::MachineRandom().fill(std::as_writable_bytes(std::span(serial)));
  serial[0] = (serial[0] & 0x7f) | 0x40;  // makes it positive, with the full length
  const std::unique_ptr<BIGNUM, Freer<BN_free>> number(BN_bin2bn(serial, sizeof serial, nullptr));
  X509_NAME* subject = X509_get_subject_name(certificate);
  const auto add_name = [&](const char* field, const std::string& value) {
    return X509_NAME_add_entry_by_txt(subject, field, MBSTRING_UTF8,
                                      reinterpret_cast<const unsigned char*>(value.data()),
                                      int(value.size()), -1, 0);
  };
  const bool done =
      X509_set_version(certificate, X509_VERSION_3) && number &&
      BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) &&
      ASN1_TIME_set(X509_getm_notBefore(certificate), seconds(from)) &&
      ASN1_TIME_set(X509_getm_notAfter(certificate), seconds(until)) &&
      X509_set_pubkey(certificate, made.key.get()) && add_name("O", "Trainyard") &&
      add_name("CN", name) &&
      X509_set_issuer_name(certificate, issuer ? X509_get_subject_name(issuer) : subject);
  if (!done) return openssl_error("making a certificate");
  return made;
}

Result<Identity> make_authority(Instant now) {
  // Makes the name unique, because a client may trust the authorities of several servers.
  const std::string name = "Trainyard authority " + os::MachineRandom().hex(4);
  Identity made = TRY(make_unsigned(name, nullptr, now - kBackdated, now + kAuthorityLifetime));
  X509* certificate = made.certificate.get();
  X509V3_CTX context;
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  const bool done =
      add_extension(certificate, context, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
      add_extension(certificate, context, NID_key_usage, "critical,keyCertSign,cRLSign") &&
      add_extension(certificate, context, NID_subject_key_identifier, "hash") &&
      X509_sign(certificate, made.key.get(), EVP_sha256());
  if (!done) return openssl_error("making the certificate authority");
  return made;
}

// Signs a certificate that is not an authority's. `usage`: "serverAuth" or "clientAuth"; `names`:
// null, or the names of the server.
Result<void> sign(const Identity& authority, const char* usage, GENERAL_NAMES* names,
                  Identity& made) {
  X509* certificate = made.certificate.get();
  X509V3_CTX context;
  X509V3_set_ctx(&context, authority.certificate.get(), certificate, nullptr, nullptr, 0);
  const bool done =
      add_extension(certificate, context, NID_basic_constraints, "critical,CA:FALSE") &&
      add_extension(certificate, context, NID_key_usage, "critical,digitalSignature") &&
      add_extension(certificate, context, NID_ext_key_usage, usage) &&
      add_extension(certificate, context, NID_subject_key_identifier, "hash") &&
      add_extension(certificate, context, NID_authority_key_identifier, "keyid:always") &&
      (!names ||
       X509_add1_ext_i2d(certificate, NID_subject_alt_name, names, 0, X509V3_ADD_DEFAULT)) &&
      X509_sign(certificate, authority.key.get(), EVP_sha256());
  if (!done) return openssl_error("signing a certificate");
  return {};
}

Result<Identity> make_server(const Identity& authority, const std::vector<std::string>& names,
                             Instant now) {
  const Names all = TRY(general_names(names));
  Identity made = TRY(make_unsigned("Trainyard server", authority.certificate.get(),
                                    now - kBackdated, now + kServerLifetime));
  TRY(sign(authority, "serverAuth", all.get(), made));
  return made;
}

// -- checking -------------------------------------------------------------------------------------

// Returns a DNS name or an IP address; "" for other kinds of names.
std::string text_of(const GENERAL_NAME& name) {
  int kind = 0;
  const auto* value =
      static_cast<const ASN1_STRING*>(GENERAL_NAME_get0_value(&name, &kind));  // borrowed
  if (kind != GEN_DNS && kind != GEN_IPADD) return "";
  const std::string bytes(reinterpret_cast<const char*>(ASN1_STRING_get0_data(value)),
                          size_t(ASN1_STRING_length(value)));
  if (kind == GEN_DNS) return bytes;
  char address[INET6_ADDRSTRLEN] = {};
  const int family = bytes.size() == sizeof(in_addr) ? AF_INET : AF_INET6;
  if (bytes.size() != sizeof(in_addr) && bytes.size() != sizeof(in6_addr)) return "";
  return ::inet_ntop(family, bytes.data(), address, sizeof address) ? address : "";
}

Result<Instant> end_of(const X509* certificate) {
  tm ends{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &ends) != 1)
    return openssl_error("reading the end of a certificate");
  return from_milliseconds(int64_t(::timegm(&ends)) * 1000);
}

bool ends_before(const X509* certificate, Instant instant) {
  const time_t limit = seconds(instant);
  return X509_cmp_time(X509_get0_notAfter(certificate), const_cast<time_t*>(&limit)) <= 0;
}

bool names_all(X509* certificate, const std::vector<std::string>& names) {
  return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    return X509_check_ip_asc(certificate, name.c_str(), 0) == 1 ||
           X509_check_host(certificate, name.data(), name.size(),
                           X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, nullptr) == 1;
  });
}

bool good_for(const Identity& server, const Identity& authority,
              const std::vector<std::string>& names, Instant now) {
  const bool good = X509_verify(server.certificate.get(), authority.key.get()) == 1 &&
                    !ends_before(server.certificate.get(), now + kRenewBefore) &&
                    names_all(server.certificate.get(), names);
  ERR_clear_error();
  return good;
}

Result<Identity> ensure_authority(const CertificatePaths& paths, Instant now) {
  if (os::exists(paths.authority)) {
    // An unreadable authority is never replaced, because clients trust exactly its bytes.
    Identity authority = TRY(read_identity(paths.authority_key, paths.authority)
                                 .in("reading the certificate authority"));
    if (!ends_before(authority.certificate.get(), now + kRenewBefore)) return authority;
  }
  Identity made = TRY(make_authority(now));
  TRY(write_identity(made, paths.authority_key, paths.authority));
  return made;
}

class IssuedCertificates final : public ClientCertificates {
 public:
  IssuedCertificates(Identity authority, std::string text)
      : authority_(std::move(authority)), text_(std::move(text)) {}

  Result<TlsIdentity> issue(const std::string& common_name, Instant now) const override {
    const Instant until = TRY(end_of(authority_.certificate.get()));
    Identity made =
        TRY(make_unsigned(common_name, authority_.certificate.get(), now - kBackdated, until));
    TRY(sign(authority_, "clientAuth", nullptr, made));
    TlsIdentity issued;
    issued.authority = text_;
    issued.certificate = TRY(certificate_text(made.certificate));
    issued.key = TRY(key_text(made.key));
    return issued;
  }

 private:
  const Identity authority_;
  const std::string text_;
};

}  // namespace

Result<CertificatePaths> ensure_certificates(const std::string& directory,
                                             const std::vector<std::string>& names, Instant now) {
  if (names.empty()) return invalid("making a server's certificate: no name was given");
  TRY(os::make_directories(directory, 0700));
  const CertificatePaths paths = {directory + "/ca.pem", directory + "/ca-key.pem",
                                  directory + "/server.pem", directory + "/server-key.pem"};
  const Identity authority = TRY(ensure_authority(paths, now));
  // Unlike the authority, this certificate is made again after any error.
  const auto server = read_identity(paths.key, paths.certificate);
  if (server && good_for(*server, authority, names, now)) return paths;
  TRY(write_identity(TRY(make_server(authority, names, now)), paths.key, paths.certificate));
  return paths;
}

Result<TlsIdentity> read_server_identity(const CertificatePaths& paths) {
  TlsIdentity identity;
  identity.authority = TRY(os::read_file(paths.authority, kPemBytesMax));
  identity.certificate = TRY(os::read_file(paths.certificate, kPemBytesMax));
  identity.key = TRY(os::read_file(paths.key, kPemBytesMax));
  return identity;
}

Result<std::unique_ptr<ClientCertificates>> open_client_certificates(
    const CertificatePaths& paths) {
  Identity authority = TRY(
      read_identity(paths.authority_key, paths.authority).in("reading the certificate authority"));
  std::string text = TRY(certificate_text(authority.certificate));
  return std::unique_ptr<ClientCertificates>(
      std::make_unique<IssuedCertificates>(std::move(authority), std::move(text)));
}

Result<CertificateFacts> read_certificate(const std::string& path) {
  const std::string text = TRY(os::read_file(path, kPemBytesMax));
  const Bio bio(BIO_new_mem_buf(text.data(), int(text.size())));
  const Certificate certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  if (!certificate) {
    Error error = openssl_error("reading " + path);
    error.kind = Kind::corrupt;
    return error;
  }
  CertificateFacts facts;
  facts.ends = TRY(end_of(certificate.get()));
  const Names names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate.get(), NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i)
    if (std::string name = text_of(*sk_GENERAL_NAME_value(names.get(), i)); !name.empty())
      facts.names.push_back(std::move(name));
  return facts;
}

}  // namespace trainyard::net
