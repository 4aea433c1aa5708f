// Uploads from a browser's form: a POST of multipart/form-data to a bucket. The fields come first, with a policy document and
// its signature; they are decoded and verified before a byte of the file is taken. They alone describe the object; headers
// of the request do not.
//
// Threads: confined to one at a time: the I/O thread's, then the stream's.
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

// Of the body, with everything up to the file: the fields, and the heads of their parts.
inline constexpr size_t kFormPrefaceBytesMax = 64 << 10;

class PostForm {
 public:
  // Nothing: the request is not such a form, or has a signature of its own.
  static std::unique_ptr<PostForm> of(const net::RequestHead& head);

  // Takes the next bytes. True: the fields are complete.
  Outcome<bool> feed(std::string_view bytes);

  // The rest requires that the fields are complete.

  // Verifies signature and policy, for this bucket and now.
  Outcome<Signer> check(const Authenticator& authenticator, const net::RequestHead& head, Instant now);
  // The form as the PUT of its object.
  const net::RequestHead& put_head() const { return put_head_; }
  S3Address address() const { return {bucket_, key_, {}}; }
  // The file, within the sizes of the policy. Lifetime: the form and the stream outlive it.
  std::unique_ptr<Body> open_body(net::Stream& stream);
  // The response that the form selects: 204, 200 or 201, or a redirect. `etag` with quotes.
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
  std::string file_;  // bytes of the file that came with the fields, or are not read yet
};

}  // namespace trainyard::api
