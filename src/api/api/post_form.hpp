// Uploads by a browser's form: a POST of multipart/form-data to a bucket, whose fields hold a policy document and its
// signature. The fields come first; they are decoded and verified before a byte of the file is taken, and say everything
// of the object: no header of the request does.
//
// Threads: confined to one at a time: the I/O thread's, then the stream's.
// Errors:  failures in S3's words.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "api/auth/auth.hpp"
#include "api/auth/post_policy.hpp"
#include "api/body.hpp"
#include "api/errors.hpp"
#include "api/protocol/form_data.hpp"
#include "api/protocol/route.hpp"
#include "api/shapes/s3.hpp"
#include "net/http_server.hpp"

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
  // As the form asks: 204, 200 or 201, or a redirect. `etag` with quotes.
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
