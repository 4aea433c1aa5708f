#include "dispatch/post_form.hpp"

#include <algorithm>
#include <cstring>

#include "base/text.hpp"
#include "objects/objects.hpp"
#include "protocol/replies.hpp"
#include "protocol/xml.hpp"

namespace trainyard::api {
namespace {

constexpr std::string_view kFileName = "${filename}";
constexpr size_t kFileReadBytes = 64 << 10;

const shapes::Service& s3_service() { return shapes::s3::kService; }

Failure form_denied(std::string message) {
  return s3_failure(403, "AccessDenied", std::move(message));
}

// Returns whether a field is a header of a PUT. Others (key, policy, the signature's fields) do not
// describe the object.
bool is_header(std::string_view field) {
  constexpr std::string_view kPlain[] = {"cache-control",    "content-disposition",
                                         "content-encoding", "content-language",
                                         "content-type",     "expires"};
  if (std::find(std::begin(kPlain), std::end(kPlain), field) != std::end(kPlain)) return true;
  constexpr std::string_view kOfSignature[] = {"x-amz-algorithm", "x-amz-credential", "x-amz-date",
                                               "x-amz-security-token", "x-amz-signature"};
  return field.starts_with("x-amz-") && std::find(std::begin(kOfSignature), std::end(kOfSignature),
                                                  field) == std::end(kOfSignature);
}

std::string expand_file_name(std::string_view key, std::string_view name) {
  std::string out;
  for (size_t at = key.find(kFileName); at != std::string_view::npos; at = key.find(kFileName)) {
    out.append(key.substr(0, at)).append(name);
    key.remove_prefix(at + kFileName.size());
  }
  return out.append(key);
}

// A redirect must not lead to a script.
bool is_web_address(std::string_view url) {
  const std::string lower = to_lower(url.substr(0, 8));
  return (lower.starts_with("http://") || lower.starts_with("https://")) &&
         std::none_of(url.begin(), url.end(), [](unsigned char c) { return c <= ' ' || c == 127; });
}

}  // namespace

// Reads the file after the fields.
class PostForm::FileBody final : public Body {
 public:
  FileBody(PostForm& form, net::Stream& stream)
      : form_(form), stream_(stream), framed_(kFileReadBytes, '\0') {}

  Result<size_t> read(std::span<char> buffer) override {
    if (failure_) return invalid(failure_->message);
    if (!begun_ && announced_too_large()) return fail(too_large_for_policy());
    begun_ = true;
    while (taken_ == form_.file_.size()) {
      form_.file_.clear();
      taken_ = 0;
      if (form_.reader_.finished()) return end();
      const size_t count = TRY(stream_.read({framed_.data(), framed_.size()}));
      if (count == 0)
        return fail(
            s3_failure(400, "IncompleteBody",
                       "The request body terminated unexpectedly: the form ends within its file."));
      if (auto fed = form_.reader_.feed({framed_.data(), count}, form_.file_); !fed)
        return fail(s3_failure(400, "MalformedPOSTRequest", fed.error().message));
    }
    const size_t count = std::min(buffer.size(), form_.file_.size() - taken_);
    if (bytes_ + count > form_.policy_.bytes_max) return fail(too_large_for_policy());
    std::memcpy(buffer.data(), form_.file_.data() + taken_, count);
    taken_ += count;
    bytes_ += count;
    return count;
  }
  std::optional<uint64_t> bytes() const override { return std::nullopt; }
  const std::map<std::string, std::string>& trailers() const override { return no_trailers_; }
  const std::optional<Failure>& failure() const override { return failure_; }

 private:
  // Only the fields before the file and the boundary after it are not the file's, so Content-Length
  // bounds the file's size.
  bool announced_too_large() const {
    const uint64_t announced = stream_.head().content_length.value_or(0);
    const uint64_t around = kFormPrefaceBytesMax + kFormPartHeadBytesMax;
    return announced > around && announced - around > form_.policy_.bytes_max;
  }

  Result<size_t> end() {
    if (bytes_ < form_.policy_.bytes_min)
      return fail(s3_failure(400, "EntityTooSmall",
                             "Your proposed upload is smaller than the minimum allowed size: " +
                                 std::to_string(form_.policy_.bytes_min) + " bytes"));
    return size_t(0);
  }

  Failure too_large_for_policy() const {
    return s3_failure(400, "EntityTooLarge",
                      "Your proposed upload exceeds the maximum allowed size: " +
                          std::to_string(form_.policy_.bytes_max) + " bytes");
  }

  Error fail(Failure failure) {
    failure_ = std::move(failure);
    return invalid(failure_->message);
  }

  PostForm& form_;
  net::Stream& stream_;
  std::string framed_;
  size_t taken_ = 0;    // read from form_.file_
  uint64_t bytes_ = 0;  // returned by read()
  bool begun_ = false;
  std::optional<Failure> failure_;
  const std::map<std::string, std::string> no_trailers_;
};

std::unique_ptr<PostForm> PostForm::of(const net::RequestHead& head) {
  if (head.method != "POST") return nullptr;
  const auto boundary = boundary_of(head.headers.get("content-type"));
  if (!boundary) return nullptr;
  const auto claim = signing::read_claim(head.target, head.headers.fields());
  if (!claim || *claim) return nullptr;
  const auto address = read_s3_address(head);
  if (!address || address->bucket.empty() || !address->key.empty() || !address->query.empty())
    return nullptr;
  std::unique_ptr<PostForm> form(new PostForm(*boundary));
  form->bucket_ = address->bucket;
  return form;
}

Outcome<bool> PostForm::feed(std::string_view bytes) {
  const auto fed = reader_.feed(bytes, file_);
  if (!fed && fed.error().kind == Kind::exhausted)
    return s3_failure(400, "MaxPostPreDataLengthExceededError",
                      "Your POST request fields preceding the upload file were too large.");
  if (!fed)
    return s3_failure(400, "MalformedPOSTRequest",
                      "The body of your POST request is not well-formed multipart/form-data: " +
                          fed.error().message);
  return reader_.at_file();
}

std::string PostForm::field(std::string_view name) const {
  for (const auto& [given, value] : reader_.fields())
    if (given == name) return value;
  return "";
}

Outcome<Signer> PostForm::check(const Authenticator& authenticator, const net::RequestHead& head,
                                Instant now) {
  // The signature does not cover headers.
  std::vector<std::string> headers;
  for (const auto& [name, value] : head.headers.fields())
    if (to_lower(name).starts_with("x-amz-")) headers.push_back(to_lower(name));
  if (!headers.empty()) return unsigned_headers(s3_service(), headers);
  if (!field("awsaccesskeyid").empty())
    return invalid_request(
        "The authorization mechanism you have provided is not supported. Please use "
        "AWS4-HMAC-SHA256.");
  const std::string encoded = field("policy");
  if (encoded.empty()) return missing_authentication(s3_service());
  for (const char* name :
       {"key", "x-amz-algorithm", "x-amz-credential", "x-amz-date", "x-amz-signature"})
    if (field(name).empty())
      return invalid_argument("Bucket POST must contain a field named '" + std::string(name) +
                              "'.");

  auto signer = authenticator.check_form(
      s3_service(),
      {field("x-amz-algorithm"), field("x-amz-credential"), field("x-amz-date"),
       field("x-amz-security-token"), field("x-amz-signature")},
      encoded, now);
  if (!signer) return signer;

  // The policy's signature is valid.
  const auto document = from_base64(encoded);
  auto policy = document ? parse_post_policy(*document) : Result<PostPolicy>(document.error());
  if (!policy)
    return s3_failure(400, "InvalidPolicyDocument",
                      document ? policy.error().message : "Invalid Policy: Invalid base64.");
  policy_ = std::move(*policy);
  key_ = field("key");
  if (key_.size() > objects::kKeyBytesMax)
    return s3_failure(400, "KeyTooLongError", "Your key is too long");
  key_ = expand_file_name(key_, reader_.file_name());
  // Variables are expanded before the conditions are checked, as in S3.
  NameValues fields = reader_.fields();
  for (auto& [name, value] : fields)
    if (name == "key") value = key_;
  if (auto checked = check_post_policy(policy_, fields, bucket_, now); !checked)
    return form_denied(checked.error().message);
  if (key_.empty()) return invalid_argument("User key must have a length greater than 0.");
  make_put_head(head);
  return signer;
}

void PostForm::make_put_head(const net::RequestHead& head) {
  put_head_ = {.method = "PUT",
               .target = "/" + percent_encode(bucket_) + "/" + percent_encode(key_, true),
               .headers = {},
               .tls = head.tls,
               .peer = head.peer,
               .content_length = std::nullopt};
  put_head_.headers.add("User-Agent", std::string(head.headers.get("user-agent")));
  for (const auto& [name, value] : reader_.fields()) {
    if (is_header(name)) put_head_.headers.add(name, value);
    if (name == "acl" || name == "tagging") put_head_.headers.add("x-amz-" + name, value);
  }
}

std::unique_ptr<Body> PostForm::open_body(net::Stream& stream) {
  return std::make_unique<FileBody>(*this, stream);
}

net::Response PostForm::reply(const std::string& etag, std::string_view request_id) const {
  net::Response response;
  response.headers.add("x-amz-request-id", std::string(request_id));
  response.headers.add("x-amz-id-2", to_base64(request_id));
  response.headers.add("ETag", etag);
  std::string redirect = field("success_action_redirect");
  if (redirect.empty()) redirect = field("redirect");
  if (is_web_address(redirect)) {
    redirect += redirect.find('?') == std::string::npos ? '?' : '&';
    redirect.append("bucket=").append(percent_encode(bucket_));
    redirect.append("&key=")
        .append(percent_encode(key_))
        .append("&etag=")
        .append(percent_encode(etag));
    response.status = 303;
    response.headers.add("Location", std::move(redirect));
    return response;
  }
  const std::string location = "/" + bucket_ + "/" + percent_encode(key_, true);
  response.headers.add("Location", location);
  const std::string status = field("success_action_status");
  response.status = status == "200" ? 200 : status == "201" ? 201 : 204;
  if (response.status != 201) return response;
  response.headers.add("Content-Type", "application/xml");
  std::string& out = response.body;
  out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<PostResponse>";
  for (const auto& [name, value] :
       NameValues{{"Location", location}, {"Bucket", bucket_}, {"Key", key_}, {"ETag", etag}}) {
    out.append("<").append(name).append(">");
    append_xml_text(out, value);
    out.append("</").append(name).append(">");
  }
  out += "</PostResponse>";
  return response;
}

}  // namespace trainyard::api
