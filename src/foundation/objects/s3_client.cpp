#include "objects/s3_client.hpp"

#include <algorithm>
#include <atomic>
#include <optional>

#include "base/log.hpp"
#include "base/text.hpp"
#include "objects/checksum.hpp"
#include "objects/names.hpp"
#include "objects/s3_client/answers.hpp"
#include "objects/s3_client/part_sender.hpp"
#include "objects/s3_client/reader.hpp"
#include "objects/s3_client/requests.hpp"
#include "objects/verifier.hpp"

namespace trainyard::objects {
namespace {

constexpr uint64_t kPartHeldBytesMax = 256
                                       // for put_part: the bytes that a writer of one part may hold
                                       << 20;
// of a listing of uploads or parts: stops an endless one
constexpr int kPagesMax = 100'000;

Fields headers_of(const PutOptions& options) {
  Fields headers = {{"Content-Type", options.content_type}};
  for (const auto& [name, value] : options.headers) headers.emplace_back(name, value);
  for (const auto& [name, value] : options.metadata)
    headers.emplace_back("x-amz-meta-" + name, value);
  std::string tags;
  for (const auto& [name, value] : options.tags)
    tags += (tags.empty() ? "" : "&") + percent_encode(name) + "=" + percent_encode(value);
  if (!tags.empty()) headers.emplace_back("x-amz-tagging", tags);
  return headers;
}

void add_condition(Fields& headers, bool only_if_absent, const std::string& only_if_etag) {
  if (only_if_absent) headers.emplace_back("If-None-Match", "*");
  if (only_if_etag == "*")
    headers.emplace_back("If-Match", "*");
  else if (!only_if_etag.empty())
    headers.emplace_back("If-Match", "\"" + only_if_etag + "\"");
}

void add_checksums(Fields& headers, const std::map<std::string, std::string>& checksums) {
  for (const auto& [algorithm, base64] : checksums) {
    headers.emplace_back("x-amz-sdk-checksum-algorithm", to_upper(algorithm));
    headers.emplace_back("x-amz-checksum-" + algorithm, base64);
  }
}

std::string element_of(const std::string& algorithm) { return "Checksum" + to_upper(algorithm); }

class S3 final : public Objects {
 public:
  S3(S3Settings settings, std::string authority, Clock& clock)
      : client_(std::move(settings), std::move(authority), clock) {}

  // -- buckets

  Result<void> create_bucket(const std::string& bucket, const std::string& region) override {
    TRY(check_bucket_name(bucket));
    std::string body;
    if (!region.empty() && region != "us-east-1")
      body =
          "<CreateBucketConfiguration "
          "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><LocationConstraint>" +
          xml_text(region) + "</LocationConstraint></CreateBucketConfiguration>";
    TRY(client_.send({.method = "PUT", .bucket = bucket, .body = body, .repeatable = false}));
    return ok();
  }

  Result<void> delete_bucket(const std::string& bucket) override {
    TRY(client_.send({.method = "DELETE", .bucket = bucket, .repeatable = false}));
    return ok();
  }

  Result<BucketInfo> head_bucket(const std::string& bucket) override {
    const auto answer = client_.send({.method = "HEAD", .bucket = bucket});
    if (!answer && answer.error().kind == Kind::not_found) return no_bucket(bucket);
    if (!answer) return answer.error();
    return BucketInfo{bucket, answer->get("x-amz-bucket-region"), {}};
  }

  Result<std::vector<BucketInfo>> list_buckets() override {
    const XmlElement xml = TRY(client_.send_for_xml({.method = "GET"}));
    std::vector<BucketInfo> all;
    if (const XmlElement* const buckets = xml.child("Buckets"))
      for (const auto& one : buckets->children) {
        const Instant created = TRY(instant_of(one.text_of("CreationDate")));
        all.push_back({one.text_of("Name"), one.text_of("BucketRegion"), created});
      }
    return all;
  }

  Result<void> set_bucket_tags(const std::string& bucket,
                               const std::map<std::string, std::string>& tags) override {
    return put_tags({.method = "PUT", .bucket = bucket}, tags);
  }

  // -- objects

  Result<std::unique_ptr<Reader>> get(const std::string& bucket, const std::string& key,
                                      std::optional<Range> range) override {
    TRY(check_key(key));
    S3Request what{.method = "GET", .bucket = bucket, .key = key};
    if (range && range->part)
      what.query.emplace_back("partNumber", std::to_string(*range->part));
    else if (range && range->from_end)
      what.headers.emplace_back("Range", "bytes=-" + std::to_string(*range->from_end));
    else if (range)
      what.headers.emplace_back("Range",
                                "bytes=" + std::to_string(range->first) + "-" +
                                    (range->last == UINT64_MAX ? "" : std::to_string(range->last)));
    what.headers.emplace_back("x-amz-checksum-mode", "ENABLED");
    auto opened = TRY(client_.open(what));
    ObjectInfo info = TRY(object_info_of(opened.head, key));
    const bool of_part = range && range->part;
    if (opened.head.status != 206)
      range.reset();
    else if (of_part)
      range = TRY(content_range_of(opened.head));
    const Range resolved = TRY(resolve_range(range, info.bytes));
    what.headers.clear();
    what.query.clear();
    std::string doing = what.text();
    auto reader = read_s3(client_, std::move(what), std::move(opened), std::move(info), resolved);
    // S3 sends no checksum with another range; some endpoints then send that of the whole object.
    if (range && !of_part) return reader;
    return verified(std::move(reader), std::move(doing));
  }

  Result<ObjectInfo> head(const std::string& bucket, const std::string& key) override {
    TRY(check_key(key));
    const auto answer = client_.send({.method = "HEAD",
                                      .bucket = bucket,
                                      .key = key,
                                      .headers = {{"x-amz-checksum-mode", "ENABLED"}}});
    if (answer) return object_info_of(*answer, key);
    if (answer.error().kind != Kind::not_found) return answer.error();
    // The answer to a HEAD has no body that tells a missing key from a missing bucket.
    TRY(head_bucket(bucket));
    return no_key(bucket, key);
  }

  Result<std::unique_ptr<Writer>> put(const std::string& bucket, const std::string& key,
                                      const PutOptions& options) override;

  Result<void> set_tags(const std::string& bucket, const std::string& key,
                        const std::map<std::string, std::string>& tags) override {
    TRY(check_key(key));
    return put_tags({.method = "PUT", .bucket = bucket, .key = key}, tags);
  }

  Result<void> remove(const std::string& bucket, const std::string& key) override {
    TRY(check_key(key));
    TRY(client_.send({.method = "DELETE", .bucket = bucket, .key = key}));
    return ok();
  }

  Result<ListPage> list(const std::string& bucket, const ListQuery& query) override {
    S3Request what{.method = "GET",
                   .bucket = bucket,
                   .query = {{"list-type", "2"},
                             {"encoding-type", "url"},
                             {"max-keys", std::to_string(query.keys_max)},
                             {"prefix", query.prefix}}};
    if (!query.delimiter.empty()) what.query.emplace_back("delimiter", query.delimiter);
    if (!query.start_after.empty()) what.query.emplace_back("start-after", query.start_after);
    const XmlElement xml = TRY(client_.send_for_xml(what));
    ListPage page;
    for (const auto& one : xml.children) {
      if (one.name == "Contents") {
        auto key = TRY(percent_decode(one.text_of("Key"), true));
        const uint64_t bytes = TRY(length_of(one.text_of("Size")));
        const Instant modified = TRY(instant_of(one.text_of("LastModified")));
        page.objects.push_back({.key = std::move(key),
                                .bytes = bytes,
                                .etag = without_quotes(one.text_of("ETag")),
                                .modified = modified});
        const std::string storage_class = one.text_of("StorageClass");
        if (!storage_class.empty() && storage_class != "STANDARD")
          page.objects.back().headers[kStorageClassHeader] = storage_class;
      } else if (one.name == "CommonPrefixes") {
        page.prefixes.push_back(TRY(percent_decode(one.text_of("Prefix"), true)));
      }
    }
    if (xml.text_of("IsTruncated") != "true") return page;
    const std::string last_key = page.objects.empty() ? "" : page.objects.back().key;
    const std::string last_prefix = page.prefixes.empty() ? "" : page.prefixes.back();
    // Skips all keys with the prefix by appending the greatest character to it.
    page.next = last_prefix > last_key ? last_prefix + "\xf4\x8f\xbf\xbf" : last_key;
    if (page.next.empty())
      return corrupt(what.text() + ": invalid answer: it is truncated, but has no keys");
    return page;
  }

  // -- uploads

  Result<std::string> start_upload(const std::string& bucket, const std::string& key,
                                   const PutOptions& options) override {
    TRY(check_key(key));
    TRY(check_options(options));
    S3Request what{.method = "POST",
                   .bucket = bucket,
                   .key = key,
                   .query = {{"uploads", ""}},
                   .headers = headers_of(options)};
    for (const auto& [algorithm, value] : options.checksums) {
      what.headers.emplace_back("x-amz-checksum-algorithm", to_upper(algorithm));
      what.headers.emplace_back(
          "x-amz-checksum-type",
          options.checksum_of_whole || algorithm == "crc64nvme" ? "FULL_OBJECT" : "COMPOSITE");
    }
    const XmlElement xml = TRY(client_.send_for_xml(what));
    const std::string id = xml.text_of("UploadId");
    if (id.empty()) return corrupt(what.text() + ": the answer has no upload ID");
    return id;
  }

  Result<std::unique_ptr<Writer>> put_part(const std::string& bucket, const std::string& key,
                                           const std::string& upload_id, uint32_t part,
                                           const PutOptions& options) override;

  // Sends one part, which the caller keeps. `abandoned`: see S3Request.
  Result<PartInfo> send_part(const std::string& bucket, const std::string& key,
                             const std::string& upload_id, uint32_t part, std::string_view bytes,
                             const std::map<std::string, std::string>& checksums,
                             const std::atomic<bool>* abandoned = nullptr) {
    S3Request what{.method = "PUT",
                   .bucket = bucket,
                   .key = key,
                   .query = {{"partNumber", std::to_string(part)}, {"uploadId", upload_id}},
                   .body = bytes,
                   .abandoned = abandoned};
    add_checksums(what.headers, checksums);
    const HttpAnswer answer = TRY(client_.send(what));
    return PartInfo{part, without_quotes(answer.get("etag")), bytes.size(), client_.clock().now(),
                    checksums};
  }

  Result<ObjectInfo> complete_upload(const std::string& bucket, const std::string& key,
                                     const std::string& upload_id,
                                     const std::vector<PartInfo>& parts,
                                     const CompleteOptions& declared) override {
    if (upload_id.empty()) return no_upload(upload_id);
    std::string body =
        "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
    uint64_t bytes = 0;
    for (const auto& part : parts) {
      body += "<Part><PartNumber>" + std::to_string(part.number) + "</PartNumber><ETag>" +
              xml_text(part.etag) + "</ETag>";
      for (const auto& [algorithm, base64] : part.checksums) {
        const std::string element = element_of(algorithm);
        body += "<" + element + ">" + xml_text(base64) + "</" + element + ">";
      }
      body += "</Part>";
      bytes += part.bytes;
    }
    body += "</CompleteMultipartUpload>";
    S3Request what{.method = "POST",
                   .bucket = bucket,
                   .key = key,
                   .query = {{"uploadId", upload_id}},
                   .body = body};
    add_condition(what.headers, declared.only_if_absent, declared.only_if_etag);
    if (declared.bytes)
      what.headers.emplace_back("x-amz-mp-object-size", std::to_string(*declared.bytes));
    for (const auto& [algorithm, base64] : declared.checksums)
      what.headers.emplace_back("x-amz-checksum-" + algorithm, base64);
    const HttpAnswer answer = TRY(client_.send(what));
    auto xml = parse_xml(answer.body);
    if (!xml)
      return corrupt(what.text() + ": invalid answer of the endpoint: " + xml.error().message);
    // The endpoint sends the status before it joins the parts, so the body may contain an error.
    if (xml->name == "Error") return refusal_of(answer, what.text()).error;
    ObjectInfo info{.key = key,
                    .bytes = bytes,
                    .etag = without_quotes(xml->text_of("ETag")),
                    .modified = client_.clock().now()};
    for (const char* algorithm : {"crc32", "crc32c", "crc64nvme", "sha1", "sha256"}) {
      std::string base64 = xml->text_of(element_of(algorithm));
      if (!base64.empty()) info.checksums[algorithm] = std::move(base64);
    }
    return info;
  }

  Result<void> abort_upload(const std::string& bucket, const std::string& key,
                            const std::string& upload_id) override {
    if (upload_id.empty()) return no_upload(upload_id);
    TRY(client_.send(
        {.method = "DELETE", .bucket = bucket, .key = key, .query = {{"uploadId", upload_id}}}));
    return ok();
  }

  Result<std::vector<PartInfo>> list_parts(const std::string& bucket, const std::string& key,
                                           const std::string& upload_id) override {
    if (upload_id.empty()) return no_upload(upload_id);
    std::vector<PartInfo> parts;
    std::string marker = "0";
    for (int page = 0; page < kPagesMax; ++page) {
      const XmlElement xml = TRY(client_.send_for_xml(
          {.method = "GET",
           .bucket = bucket,
           .key = key,
           .query = {{"uploadId", upload_id}, {"part-number-marker", marker}}}));
      for (const auto& one : xml.children) {
        if (one.name != "Part") continue;
        const auto number = TRY(part_number_of(one.text_of("PartNumber")));
        const uint64_t bytes = TRY(length_of(one.text_of("Size")));
        const Instant modified = TRY(instant_of(one.text_of("LastModified")));
        PartInfo part{number, without_quotes(one.text_of("ETag")), bytes, modified};
        for (const char* algorithm : {"crc32", "crc32c", "crc64nvme", "sha1", "sha256"}) {
          std::string base64 = one.text_of(element_of(algorithm));
          if (!base64.empty()) part.checksums[algorithm] = std::move(base64);
        }
        parts.push_back(std::move(part));
      }
      if (xml.text_of("IsTruncated") != "true") return parts;
      marker = xml.text_of("NextPartNumberMarker");
    }
    return corrupt("listing the parts of " + upload_id + ": stopped after too many pages");
  }

  Result<std::vector<UploadInfo>> list_uploads(const std::string& bucket,
                                               const std::string& prefix) override {
    std::vector<UploadInfo> uploads;
    Fields marker;
    for (int page = 0; page < kPagesMax; ++page) {
      S3Request what{.method = "GET",
                     .bucket = bucket,
                     .query = {{"uploads", ""}, {"prefix", prefix}, {"encoding-type", "url"}}};
      what.query.insert(what.query.end(), marker.begin(), marker.end());
      const XmlElement xml = TRY(client_.send_for_xml(what));
      for (const auto& one : xml.children) {
        if (one.name != "Upload") continue;
        auto key = TRY(percent_decode(one.text_of("Key"), true));
        const Instant initiated = TRY(instant_of(one.text_of("Initiated")));
        uploads.push_back({std::move(key), one.text_of("UploadId"), initiated});
      }
      if (xml.text_of("IsTruncated") != "true") return uploads;
      const auto next_key = TRY(percent_decode(xml.text_of("NextKeyMarker"), true));
      marker = {{"key-marker", next_key}, {"upload-id-marker", xml.text_of("NextUploadIdMarker")}};
    }
    return corrupt("listing the uploads of " + bucket + ": stopped after too many pages");
  }

  Client& client() { return client_; }

 private:
  Result<void> put_tags(S3Request what, const std::map<std::string, std::string>& tags) {
    std::string body = "<Tagging xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><TagSet>";
    for (const auto& [name, value] : tags)
      body += "<Tag><Key>" + xml_text(name) + "</Key><Value>" + xml_text(value) + "</Value></Tag>";
    body += "</TagSet></Tagging>";
    what.query = {{"tagging", ""}};
    what.body = body;
    TRY(client_.send(what));
    return ok();
  }

  Client client_;
};

// Collects the bytes of one part at a time. An object of one part is sent by a plain PUT, a larger
// one by a multipart upload, of which several parts are sent at once.
class S3Writer final : public Writer {
 public:
  S3Writer(S3& s3, std::string bucket, std::string key, PutOptions options, ContentCheck check)
      : s3_(s3),
        bucket_(std::move(bucket)),
        key_(std::move(key)),
        options_(std::move(options)),
        content_check_(std::move(check)) {
    part_bytes_ = std::max(s3.client().settings().part_bytes, kPartBytesMin);
    if (options_.bytes)
      part_bytes_ = std::max(part_bytes_, (*options_.bytes + kPartsMax - 1) / kPartsMax);
  }
  ~S3Writer() override { drop_upload(); }

  Result<void> write(std::span<const char> bytes) override {
    content_check_.add(bytes);
    while (!bytes.empty()) {
      if (part_.size() == part_bytes_) {
        TRY(send_part());
        part_.reserve(part_bytes_);
      }
      const size_t taken = std::min<uint64_t>(bytes.size(), part_bytes_ - part_.size());
      part_.append(bytes.data(), taken);
      bytes = bytes.subspan(taken);
    }
    return ok();
  }

  void expect_checksum(std::string algorithm, std::string base64) override {
    content_check_.expect(std::move(algorithm), std::move(base64));
  }

  Result<ObjectInfo> commit() override {
    const auto kept = TRY(content_check_.finish());
    if (!upload_id_.empty()) {
      TRY(send_part());
      const auto parts = TRY(sender_->finish());
      ObjectInfo info =
          TRY(s3_.complete_upload(bucket_, key_, upload_id_, parts,
                                  CompleteOptions{.only_if_absent = options_.only_if_absent,
                                                  .only_if_etag = options_.only_if_etag}));
      upload_id_.clear();
      info.content_type = options_.content_type;
      info.headers = options_.headers;
      info.metadata = options_.metadata;
      return info;
    }
    S3Request what{.method = "PUT",
                   .bucket = bucket_,
                   .key = key_,
                   .headers = headers_of(options_),
                   .body = part_,
                   .repeatable = !options_.only_if_absent && options_.only_if_etag.empty()};
    if (options_.md5) what.headers.emplace_back("Content-MD5", *options_.md5);
    add_condition(what.headers, options_.only_if_absent, options_.only_if_etag);
    add_checksums(what.headers, kept.checksums);
    const HttpAnswer answer = TRY(s3_.client().send(what));
    return ObjectInfo{key_,
                      kept.bytes,
                      without_quotes(answer.get("etag")),
                      s3_.client().clock().now(),
                      options_.content_type,
                      options_.headers,
                      options_.metadata,
                      kept.checksums};
  }

 private:
  static constexpr size_t kPartsBeforeGrowing = 1000;

  Result<void> send_part() {
    if (!sender_) {
      upload_id_ = TRY(s3_.start_upload(bucket_, key_, options_));
      sender_.emplace([this](uint32_t number, std::string_view bytes,
                             const std::atomic<bool>& abandoned) -> Result<PartInfo> {
        std::map<std::string, std::string> checksums;
        for (const auto& [algorithm, value] : options_.checksums)
          checksums[algorithm] = to_base64(checksum_of(algorithm, bytes));
        return s3_.send_part(bucket_, key_, upload_id_, number, bytes, checksums, &abandoned);
      });
    }
    TRY(sender_->send(part_));
    // An object of unknown length must fit in kPartsMax parts: growing from 8 MiB, they reach 7.8
    // TiB.
    if (!options_.bytes && sender_->parts() % kPartsBeforeGrowing == 0) part_bytes_ *= 2;
    return ok();
  }

  void drop_upload() {
    sender_.reset();  // a part that arrives after the abort would stay at the endpoint
    if (upload_id_.empty()) return;
    const auto aborted = s3_.abort_upload(bucket_, key_, upload_id_);
    if (!aborted)
      log(Level::warning, "objects", "could not abort an upload; the endpoint keeps its parts",
          {{"why", aborted.error().message}});
  }

  S3& s3_;
  const std::string bucket_;
  const std::string key_;
  const PutOptions options_;
  ContentCheck content_check_;
  uint64_t part_bytes_;
  std::string part_;
  std::string upload_id_;
  std::optional<PartSender> sender_;  // unset until the first part is full
};

class S3PartWriter final : public Writer {
 public:
  S3PartWriter(S3& s3, std::string bucket, std::string key, std::string upload_id, uint32_t part,
               ContentCheck check)
      : s3_(s3),
        bucket_(std::move(bucket)),
        key_(std::move(key)),
        upload_id_(std::move(upload_id)),
        part_(part),
        content_check_(std::move(check)) {}

  Result<void> write(std::span<const char> bytes) override {
    content_check_.add(bytes);
    if (bytes_.size() + bytes.size() > kPartHeldBytesMax)
      return exhausted("sending a part: larger than the limit of " +
                       human_bytes(kPartHeldBytesMax));
    bytes_.append(bytes.data(), bytes.size());
    return ok();
  }
  void expect_checksum(std::string algorithm, std::string base64) override {
    content_check_.expect(std::move(algorithm), std::move(base64));
  }
  Result<ObjectInfo> commit() override {
    const auto kept = TRY(content_check_.finish());
    const PartInfo part =
        TRY(s3_.send_part(bucket_, key_, upload_id_, part_, bytes_, kept.checksums));
    return ObjectInfo{.key = key_,
                      .bytes = part.bytes,
                      .etag = part.etag,
                      .modified = part.modified,
                      .checksums = kept.checksums};
  }

 private:
  S3& s3_;
  const std::string bucket_, key_, upload_id_;
  const uint32_t part_;
  ContentCheck content_check_;
  std::string bytes_;
};

Result<std::unique_ptr<Writer>> S3::put(const std::string& bucket, const std::string& key,
                                        const PutOptions& options) {
  TRY(check_key(key));
  TRY(check_options(options));
  auto check = TRY(ContentCheck::make(options));
  return std::unique_ptr<Writer>(new S3Writer(*this, bucket, key, options, std::move(check)));
}

Result<std::unique_ptr<Writer>> S3::put_part(const std::string& bucket, const std::string& key,
                                             const std::string& upload_id, uint32_t part,
                                             const PutOptions& options) {
  TRY(check_key(key));
  auto check = TRY(ContentCheck::make(options));
  return std::unique_ptr<Writer>(
      new S3PartWriter(*this, bucket, key, upload_id, part, std::move(check)));
}

}  // namespace

Result<std::unique_ptr<Objects>> open_s3(S3Settings settings, Clock& clock) {
  while (settings.endpoint.ends_with('/')) settings.endpoint.pop_back();
  const bool plain = settings.endpoint.starts_with("http://"),
             tls = settings.endpoint.starts_with("https://");
  const std::string authority = plain ? settings.endpoint.substr(7)
                                : tls ? settings.endpoint.substr(8)
                                      : "";
  if (authority.empty() || authority.find_first_of("/?#@ \t\r\n") != authority.npos)
    return invalid("'" + shorten(settings.endpoint, 200) +
                   "': expected http://HOST:PORT or https://HOST:PORT");
  return std::unique_ptr<Objects>(new S3(std::move(settings), authority, clock));
}

}  // namespace trainyard::objects
