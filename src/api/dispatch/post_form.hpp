// PostForm handles an upload from a browser's form: a POST of multipart/form-data to a bucket. The
// fields come first, with a policy document and its signature. They are decoded and verified before
// the file is read. Only the fields describe the object; the headers of the request do not.
//
// Threads: one at a time: the I/O thread, then the stream's.
// Errors:  failures with S3's texts.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "auth/auth.hpp"
#include "auth/post_policy.hpp"
#include "dispatch/body.hpp"
#include "net/http_server.hpp"
#include "protocol/errors.hpp"
#include "protocol/form_data.hpp"
#include "protocol/route.hpp"
#include "shapes/s3.hpp"

namespace trainyard::api {

// The maximum size of the body before the file: the fields, and the heads of their parts.
inline constexpr size_t kFormPrefaceBytesMax = 64 << 10;

class PostForm {
 public:
  // Returns nullptr if the request is not such a form, or if its head has a signature.
  static std::unique_ptr<PostForm> of(const net::RequestHead& head);

  // Decodes the next bytes. Returns true once the fields are complete.
  Outcome<bool> feed(std::string_view bytes);

  // The functions below require that the fields are complete.

  // Verifies the signature, and checks the policy for this bucket at this time.
  Outcome<Signer> check(const Authenticator& authenticator, const net::RequestHead& head,
                        Instant now);
  // Returns the head of the equivalent PUT.
  const net::RequestHead& put_head() const { return put_head_; }
  S3Address address() const { return {bucket_, key_, {}}; }
  // Reads the file, whose size the policy limits. Lifetime: the form and the stream outlive the
  // body.
  std::unique_ptr<Body> open_body(net::Stream& stream);
  // Makes the response that the form selects: 204, 200 or 201, or a redirect. `etag`: with quotes.
  net::Response reply(const std::string& etag, std::string_view request_id) const;

 private:
  class FileBody;
  explicit PostForm(std::string_view boundary) : reader_(boundary) {}
  std::string field(std::string_view name) const;
  void make_put_head(const net::RequestHead& head);

  FormDataReader reader_;
  PostPolicy policy_;
  std::string bucket_, key_;
  net::RequestHead put_head_;
  std::string file_;  // bytes of the file that are not read yet
};

}  // namespace trainyard::api
