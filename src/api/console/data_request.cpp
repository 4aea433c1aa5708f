#include "console/data_request.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "auth/temporary_keys.hpp"
#include "base/enum_table.hpp"
#include "base/text.hpp"
#include "console/api_call.hpp"
#include "console/page_request.hpp"
#include "shapes/s3.hpp"
#include "signing/signing.hpp"

namespace trainyard::api::console {
namespace {

constexpr Duration kDataKeysLifetime = 1min;  // the request is made at once
constexpr size_t kBucketBytesMax = 63, kKeyBytesMax = 1'024, kTokenBytesMax = 8'192;

constexpr EnumTable<DataView> kViews{"view of data",
                                     {{DataView::buckets, "buckets"},
                                      {DataView::objects, "objects"},
                                      {DataView::text, "text"},
                                      {DataView::image, "image"},
                                      {DataView::download, "download"}}};

constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kImageTypes{
    {{".png", "image/png"},
     {".jpg", "image/jpeg"},
     {".jpeg", "image/jpeg"},
     {".gif", "image/gif"},
     {".webp", "image/webp"}}};

bool is_bucket(std::string_view name) {
  return name.size() >= 3 && name.size() <= kBucketBytesMax &&
         std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
         });
}

bool is_of_object(DataView view) {
  return view == DataView::text || view == DataView::image || view == DataView::download;
}

std::string target_of(const DataRequest& request) {
  if (request.view == DataView::buckets) return "/";
  if (is_of_object(request.view))
    return "/" + request.bucket + "/" + percent_encode(request.key, true);
  std::string target = "/" + request.bucket + "?";
  if (!request.token.empty()) target += "continuation-token=" + percent_encode(request.token) + "&";
  target +=
      "delimiter=%2F&encoding-type=url&list-type=2&max-keys=" + std::to_string(kListedObjectsMax) +
      "&prefix=" + percent_encode(request.prefix);
  return target;
}

std::string file_name_of(std::string_view key) {
  const std::string_view name = key.substr(key.rfind('/') + 1);
  return percent_encode(name.empty() ? "object" : name);
}

}  // namespace

Result<DataRequest> read_data_request(const net::RequestHead& head) {
  DataRequest out;
  out.view = TRY(kViews.parse(query_value(head, "what")));
  out.region = query_value(head, "region");
  if (out.view == DataView::buckets) return out;
  out.bucket = query_value(head, "bucket");
  if (!is_bucket(out.bucket)) return invalid("invalid bucket: " + shorten(out.bucket, 70));
  if (is_of_object(out.view)) {
    out.key = query_value(head, "key");
    if (out.key.empty() || out.key.size() > kKeyBytesMax)
      return invalid("invalid key: must have 1 to " + std::to_string(kKeyBytesMax) + " bytes");
    if (out.view == DataView::image && !image_type_of(out.key))
      return invalid("invalid key: view=image needs the name of an image file");
    return out;
  }
  out.prefix = query_value(head, "prefix");
  if (out.prefix.size() > kKeyBytesMax)
    return invalid("invalid prefix: must have at most " + std::to_string(kKeyBytesMax) + " bytes");
  out.token = query_value(head, "token");
  if (out.token.size() > kTokenBytesMax)
    return invalid("invalid token: must have at most " + std::to_string(kTokenBytesMax) + " bytes");
  return out;
}

std::optional<std::string_view> image_type_of(std::string_view key) {
  const std::string name = to_lower(key);
  for (const auto& [ending, type] : kImageTypes)
    if (name.ends_with(ending)) return type;
  return {};
}

Result<net::RequestHead> sign_data_request(const DataRequest& request, const SignedIn& who,
                                           const net::RequestHead& from,
                                           const std::string& sealing_secret, Instant now,
                                           Random& random) {
  const std::string& region = request.region.empty() ? who.region : request.region;
  if (!is_region(region)) return invalid("invalid region: " + shorten(region, 70));
  const TemporaryKeys keys =
      issue_delegated_keys(sealing_secret, TRY(format_delegation(delegation_for(who, from))), now,
                           kDataKeysLifetime, random);
  net::RequestHead out;
  out.method = "GET";
  out.target = target_of(request);
  signing::HeaderList headers{{"Host", "console"}};
  for (auto& field : signing::sign(out.method, out.target, headers, signing::sha256_hex(""),
                                   {keys.access_key_id, keys.secret_access_key, keys.session_token},
                                   {region, std::string(shapes::s3::kService.scope)}, now))
    headers.push_back(std::move(field));
  for (auto& [name, value] : headers) out.headers.add(std::move(name), std::move(value));
  if (request.view == DataView::text)
    out.headers.add("Range", "bytes=0-" + std::to_string(kTextBytesMax - 1));
  if (request.view == DataView::image)
    out.headers.add("Range", "bytes=0-" + std::to_string(kImageBytesMax - 1));
  out.headers.add("User-Agent", std::string(from.headers.get("user-agent")));
  out.peer = from.peer;
  out.tls = from.tls;
  out.content_length = 0;
  return out;
}

net::Headers data_headers(const DataRequest& request, int status, const net::Headers& from) {
  net::Headers out;
  const bool whole = status == 200 || status == 206;
  std::string_view type = "application/xml";
  if (whole && request.view == DataView::text) type = "text/plain; charset=utf-8";
  if (whole && request.view == DataView::image)
    type = image_type_of(request.key).value_or("application/octet-stream");
  if (whole && request.view == DataView::download) {
    type = "application/octet-stream";
    out.add("Content-Disposition", "attachment; filename*=UTF-8''" + file_name_of(request.key));
  }
  out.add("Content-Type", std::string(type));
  out.add("Cache-Control", "no-store");
  if (from.has("content-range")) out.add("Content-Range", std::string(from.get("content-range")));
  if (from.has("x-amz-request-id"))
    out.add("x-amz-request-id", std::string(from.get("x-amz-request-id")));
  add_security_headers(out);
  if (is_of_object(request.view)) out.set("Content-Security-Policy", "default-src 'none'; sandbox");
  return out;
}

}  // namespace trainyard::api::console
