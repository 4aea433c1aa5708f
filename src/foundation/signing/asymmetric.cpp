#include "signing/asymmetric.hpp"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/obj_mac.h>
#include <openssl/param_build.h>

#include <memory>

#include "base/check.hpp"
#include "signing/signing.hpp"

namespace trainyard::signing {
namespace {

constexpr size_t kScalarBytes = 32, kPointBytes = 65;
// limit of candidates, as in AWS's SDKs; a candidate fails once in 2^32 times
constexpr int kCandidatesMax = 254;
constexpr std::string_view kLabel = "AWS4-ECDSA-P256-SHA256";

template <auto release>
struct Release {
  template <class T>
  void operator()(T* value) const {
    release(value);
  }
};
using Number = std::unique_ptr<BIGNUM, Release<BN_clear_free>>;
using Group = std::unique_ptr<EC_GROUP, Release<EC_GROUP_free>>;
using Point = std::unique_ptr<EC_POINT, Release<EC_POINT_free>>;
using Key = std::unique_ptr<EVP_PKEY, Release<EVP_PKEY_free>>;
using KeyContext = std::unique_ptr<EVP_PKEY_CTX, Release<EVP_PKEY_CTX_free>>;
using DigestContext = std::unique_ptr<EVP_MD_CTX, Release<EVP_MD_CTX_free>>;
using Builder = std::unique_ptr<OSSL_PARAM_BLD, Release<OSSL_PARAM_BLD_free>>;
using Parameters = std::unique_ptr<OSSL_PARAM, Release<OSSL_PARAM_free>>;

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

const EC_GROUP* p256() {
  static const Group group(EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1));
  CHECK(group != nullptr, "OpenSSL has P-256");
  return group.get();
}

Number number_of(std::string_view bytes) {
  Number number(BN_bin2bn(bytes_of(bytes), int(bytes.size()), nullptr));
  CHECK(number != nullptr, "a number needs memory only");
  return number;
}

// Returns null if the point is not on the curve.
Key make_key(std::string_view point, const BIGNUM* scalar) {
  const Builder builder(OSSL_PARAM_BLD_new());
  bool good =
      OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0) &&
      OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(),
                                       point.size());
  if (scalar)
    good = good && OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_PRIV_KEY, scalar);
  CHECK(good, "parameters need memory only");
  const Parameters parameters(OSSL_PARAM_BLD_to_param(builder.get()));
  const KeyContext context(EVP_PKEY_CTX_new_from_name(nullptr, "EC", nullptr));
  EVP_PKEY* made = nullptr;
  if (EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &made, scalar ? EVP_PKEY_KEYPAIR : EVP_PKEY_PUBLIC_KEY,
                        parameters.get()) != 1)
    return nullptr;
  return Key(made);
}

}  // namespace

std::string derive_private_key(std::string_view access_key_id, std::string_view secret_access_key) {
  const std::string key = std::string("AWS4A").append(secret_access_key);
  const Number limit(BN_dup(EC_GROUP_get0_order(p256())));
  CHECK(limit && BN_sub_word(limit.get(), 2) == 1, "the order of P-256 is large");
  for (int counter = 1; counter <= kCandidatesMax; ++counter) {
    // Number of the block, label, separator, context, length in bits.
    std::string input("\0\0\0\1", 4);
    input.append(kLabel).append(1, '\0').append(access_key_id).append(1, char(counter));
    input.append("\0\0\1\0", 4);
    const Number candidate = number_of(hmac_sha256(key, input));
    if (BN_cmp(candidate.get(), limit.get()) > 0) continue;
    CHECK(BN_add_word(candidate.get(), 1) == 1, "a number needs memory only");
    std::string scalar(kScalarBytes, '\0');
    CHECK(BN_bn2binpad(candidate.get(), reinterpret_cast<unsigned char*>(scalar.data()),
                       int(scalar.size())) == int(kScalarBytes),
          "a scalar of P-256 has 32 bytes");
    return scalar;
  }
  CHECK(false, "254 candidates in a row are not above the order of P-256");
  return "";
}

std::string public_key_of(std::string_view private_key) {
  const Number scalar = number_of(private_key);
  const Point point(EC_POINT_new(p256()));
  std::string bytes(kPointBytes, '\0');
  const bool good =
      point && EC_POINT_mul(p256(), point.get(), scalar.get(), nullptr, nullptr, nullptr) == 1 &&
      EC_POINT_point2oct(p256(), point.get(), POINT_CONVERSION_UNCOMPRESSED,
                         reinterpret_cast<unsigned char*>(bytes.data()), bytes.size(),
                         nullptr) == kPointBytes;
  CHECK(good, "a scalar of P-256 has a point");
  return bytes;
}

bool verify_ecdsa(std::string_view public_key, std::string_view text, std::string_view signature) {
  const Key key = make_key(public_key, nullptr);
  const DigestContext context(EVP_MD_CTX_new());
  return key && context &&
         EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr, key.get()) == 1 &&
         EVP_DigestVerify(context.get(), bytes_of(signature), signature.size(), bytes_of(text),
                          text.size()) == 1;
}

std::string sign_ecdsa(std::string_view private_key, std::string_view text) {
  const Number scalar = number_of(private_key);
  const Key key = make_key(public_key_of(private_key), scalar.get());
  const DigestContext context(EVP_MD_CTX_new());
  std::string signature(256, '\0');
  size_t length = signature.size();
  const bool good =
      key && context &&
      EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key.get()) == 1 &&
      EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &length,
                     bytes_of(text), text.size()) == 1;
  CHECK(good, "a derived key signs");
  signature.resize(length);
  return signature;
}

}  // namespace trainyard::signing
