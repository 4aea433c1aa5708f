#include "campaign/copy.hpp"

#include <algorithm>
#include <map>

namespace trainyard::campaign {
namespace {

using objects::ObjectInfo;
using objects::Objects;

// The metadata with the source's ETag; the ETag of a copy in parts differs.
constexpr const char* kSourceTag = "trainyard-source-etag";

class Copier {
 public:
  Copier(const CopyEnd& from, const CopyEnd& to, const CopyLimits& limits,
         const std::function<bool(const CopyProgress&)>& moved)
      : from_(from), to_(to), limits_(limits), moved_(moved), buffer_(limits.buffer_bytes, '\0') {}

  Result<CopyProgress> run() {
    source_ = TRY(objects::parse_s3_uri(from_.uri));
    target_ = TRY(objects::parse_s3_uri(to_.uri));
    const auto wanted =
        TRY(list(from_.store, source_.bucket, source_.key).in("listing " + from_.uri));
    if (wanted.empty()) return not_found("no objects found at " + from_.uri);
    TRY(ensure_bucket());
    std::map<std::string, ObjectInfo> there;
    for (auto& info : TRY(list(to_.store, target_.bucket, target_.key).in("listing " + to_.uri)))
      there[info.key] = info;
    progress_.objects_total = int64_t(wanted.size());
    for (const auto& info : wanted) progress_.bytes_total += int64_t(info.bytes);
    for (const auto& info : wanted) {
      const std::string key = target_key(info.key, source_.key, target_.key);
      const auto found = there.find(key);
      if (found == there.end() || !TRY(is_copy(info, found->second)))
        TRY(copy(info, key).in("copying s3://" + source_.bucket + "/" + info.key));
      else
        progress_.bytes_copied += int64_t(info.bytes);
      ++progress_.objects_copied;
      TRY(tell());
    }
    return progress_;
  }

 private:
  Result<void> tell() {
    if (moved_(progress_)) return ok();
    return cancelled("the copy was cancelled");
  }

  Result<std::vector<ObjectInfo>> list(Objects& store, const std::string& bucket,
                                       const std::string& prefix) {
    std::vector<ObjectInfo> all;
    objects::ListQuery query;
    query.prefix = prefix;
    do {
      auto page = TRY(store.list(bucket, query));
      all.insert(all.end(), page.objects.begin(), page.objects.end());
      if (all.size() > limits_.objects_max)
        return exhausted("more than " + std::to_string(limits_.objects_max) + " objects");
      query.start_after = page.next;
    } while (!query.start_after.empty());
    return all;
  }

  Result<void> ensure_bucket() {
    const auto there = to_.store.head_bucket(target_.bucket);
    // A principal that may write below a prefix need not have rights on the bucket. If the bucket
    // does not exist, the first put fails.
    if (there || there.error().kind == Kind::denied) return {};
    if (there.error().kind != Kind::not_found) return there.error();
    auto made = to_.store.create_bucket(target_.bucket, to_.region);
    if (!made && made.error().kind == Kind::conflict) return {};
    return std::move(made).in("making the bucket " + target_.bucket);
  }

  Result<bool> is_copy(const ObjectInfo& source, const ObjectInfo& target) {
    if (source.bytes != target.bytes) return false;
    if (source.etag == target.etag) return true;
    const auto whole = TRY(to_.store.head(target_.bucket, target.key));
    const auto tag = whole.metadata.find(kSourceTag);
    return tag != whole.metadata.end() && tag->second == source.etag;
  }

  Result<void> copy(const ObjectInfo& source, const std::string& key) {
    objects::PutOptions options;
    options.metadata[kSourceTag] = source.etag;
    if (source.bytes > limits_.part_bytes) return copy_in_parts(source, key, options);
    options.bytes = source.bytes;
    auto writer = TRY(to_.store.put(target_.bucket, key, options));
    TRY(pour(source, {}, *writer));
    TRY(writer->commit());
    return {};
  }

  Result<void> copy_in_parts(const ObjectInfo& source, const std::string& key,
                             const objects::PutOptions& options) {
    const uint64_t part_bytes = std::max(limits_.part_bytes, source.bytes / objects::kPartsMax + 1);
    const std::string upload = TRY(find_upload(source, key, options));
    std::map<uint32_t, objects::PartInfo> parts;
    for (auto& part : TRY(to_.store.list_parts(target_.bucket, key, upload)))
      parts[part.number] = part;
    for (uint64_t first = 0; first < source.bytes; first += part_bytes) {
      const auto number = uint32_t(first / part_bytes + 1);
      const uint64_t bytes = std::min(part_bytes, source.bytes - first);
      if (const auto found = parts.find(number);
          found != parts.end() && found->second.bytes == bytes) {
        progress_.bytes_copied += int64_t(bytes);
        continue;
      }
      objects::PutOptions of_part;
      of_part.bytes = bytes;
      auto writer = TRY(to_.store.put_part(target_.bucket, key, upload, number, of_part));
      TRY(pour(source, objects::Range{first, first + bytes - 1, {}}, *writer));
      const auto done = TRY(writer->commit());
      parts[number] = {number, done.etag, bytes, {}, {}};
    }
    std::vector<objects::PartInfo> ordered;
    for (const auto& [number, part] : parts)
      ordered.push_back({number, part.etag, part.bytes, {}, {}});
    TRY(to_.store.complete_upload(target_.bucket, key, upload, ordered));
    return {};
  }

  // Continues an upload that was begun after the source's last change; others have other content.
  Result<std::string> find_upload(const ObjectInfo& source, const std::string& key,
                                  const objects::PutOptions& options) {
    for (const auto& upload : TRY(to_.store.list_uploads(target_.bucket, key)))
      if (upload.key == key && upload.started > source.modified) return upload.upload_id;
    return to_.store.start_upload(target_.bucket, key, options);
  }

  Result<void> pour(const ObjectInfo& source, const std::optional<objects::Range>& range,
                    objects::Writer& writer) {
    const auto reader = TRY(from_.store.get(source_.bucket, source.key, range));
    if (reader->info().etag != source.etag)
      return conflict("the object changed while it was copied");
    for (;;) {
      const size_t got = TRY(reader->read(buffer_));
      if (got == 0) return {};
      TRY(writer.write({buffer_.data(), got}));
      progress_.bytes_copied += int64_t(got);
      progress_.bytes_moved += int64_t(got);
      TRY(tell());
    }
  }

  const CopyEnd& from_;
  const CopyEnd& to_;
  const CopyLimits& limits_;
  const std::function<bool(const CopyProgress&)>& moved_;
  std::string buffer_;
  objects::Location source_, target_;
  CopyProgress progress_;
};

}  // namespace

std::string target_key(const std::string& key, const std::string& from_prefix,
                       const std::string& to_prefix) {
  if (!to_prefix.empty() && !to_prefix.ends_with('/'))
    return to_prefix + key.substr(from_prefix.size());
  const size_t slash = from_prefix.rfind('/');
  return to_prefix + key.substr(slash == std::string::npos ? 0 : slash + 1);
}

Result<CopyProgress> copy_objects(const CopyEnd& from, const CopyEnd& to, const CopyLimits& limits,
                                  const std::function<bool(const CopyProgress&)>& moved) {
  return Copier(from, to, limits, moved).run();
}

}  // namespace trainyard::campaign
