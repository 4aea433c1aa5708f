#include "s3/lifecycle.hpp"

#include <algorithm>

#include "base/log.hpp"
#include "base/text.hpp"

namespace trainyard::api::s3 {
namespace {

namespace s3 = shapes::s3;
using objects::Objects;

void add_tag(LifecycleRule& rule, const s3::Tag& tag) {
  rule.tags[tag.key.value_or("")] = tag.value.value_or("");
}

// The predicates of a filter or of its And.
template <class Predicates>
void copy_predicates(LifecycleRule& rule, const Predicates& from) {
  if (from.prefix) rule.prefix = *from.prefix;
  rule.bytes_above = from.object_size_greater_than;
  rule.bytes_below = from.object_size_less_than;
}

using Rules = std::vector<LifecycleRule>;
using Stop = std::function<bool()>;

// Returns whether a rule expires the object, without checking tags, which listings lack.
bool is_due(const LifecycleRule& rule, const objects::ObjectInfo& object, Instant now) {
  if (!object.key.starts_with(rule.prefix)) return false;
  if (rule.bytes_above && object.bytes <= uint64_t(std::max<int64_t>(*rule.bytes_above, 0)))
    return false;
  if (rule.bytes_below && object.bytes >= uint64_t(std::max<int64_t>(*rule.bytes_below, 0)))
    return false;
  if (rule.expires_on) return now >= *rule.expires_on;
  return rule.expires_after_days && now >= due_after(object.modified, *rule.expires_after_days);
}

// Returns the longest prefix that all rules share, so that one listing serves all rules.
std::string common_prefix(const Rules& rules) {
  std::string prefix = rules.empty() ? "" : rules.front().prefix;
  for (const LifecycleRule& rule : rules)
    prefix.resize(size_t(std::ranges::mismatch(prefix, rule.prefix).in1 - prefix.begin()));
  while (!is_utf8(prefix)) prefix.pop_back();  // prefixes may differ within a character
  return prefix;
}

// Applies the rules to all buckets once.
class Pass {
 public:
  Pass(Objects& objects, Instant now) : objects_(objects), now_(now) {}

  // `stop`: called between two objects.
  void apply(const std::string& bucket, const Rules& rules, const Stop& stop) {
    Rules expiring, aborting;
    for (const LifecycleRule& rule : rules) {
      if (rule.expires_after_days || rule.expires_on) expiring.push_back(rule);
      if (rule.aborts_after_days) aborting.push_back(rule);
    }
    if (!expiring.empty()) remove_objects(bucket, expiring, stop);
    if (!aborting.empty()) abort_uploads(bucket, aborting, stop);
  }
  const LifecycleResult& result() const { return result_; }

 private:
  void remove_objects(const std::string& bucket, const Rules& rules, const Stop& stop) {
    objects::ListQuery query{.prefix = common_prefix(rules), .delimiter = "", .start_after = ""};
    do {
      const auto page = objects_.list(bucket, query);
      if (!page) return failed(bucket, page.error());
      for (const auto& object : page->objects)
        if (stop() || !remove_if_expired(bucket, rules, object)) return;
      query.start_after = page->next;
    } while (!query.start_after.empty());
  }

  // Returns false if the store cannot remove objects at all: the caller stops.
  bool remove_if_expired(const std::string& bucket, const Rules& rules,
                         const objects::ObjectInfo& listed) {
    bool expired = false, by_tags = false;
    for (const LifecycleRule& rule : rules)
      if (is_due(rule, listed, now_)) (rule.tags.empty() ? expired : by_tags) = true;
    objects::ObjectInfo object = listed;
    if (!expired && by_tags) {
      auto found = objects_.head(bucket, listed.key);
      if (!found && found.error().kind != Kind::not_found) failed(bucket, found.error());
      if (!found) return true;
      object = *std::move(found);
      expired =
          std::ranges::any_of(rules, [&](const auto& rule) { return expires(rule, object, now_); });
    }
    if (!expired) return true;
    const auto removed = objects_.remove_unchanged(bucket, object.key, object);
    if (removed) ++result_.objects_removed;
    if (removed || removed.error().is(objects::Fault::etag_differs)) return true;
    failed(bucket, removed.error());
    return removed.error().kind != Kind::invalid;
  }

  void abort_uploads(const std::string& bucket, const Rules& rules, const Stop& stop) {
    const auto uploads = objects_.list_uploads(bucket, common_prefix(rules));
    if (!uploads) return failed(bucket, uploads.error());
    for (const auto& upload : *uploads) {
      if (stop()) return;
      if (std::ranges::none_of(rules, [&](const auto& rule) { return aborts(rule, upload, now_); }))
        continue;
      const auto aborted = objects_.abort_upload(bucket, upload.key, upload.upload_id);
      if (aborted)
        ++result_.uploads_aborted;
      else if (aborted.error().kind != Kind::not_found)
        failed(bucket, aborted.error());
    }
  }

  // Logs the first failure of a pass; further ones mostly have the same cause.
  void failed(const std::string& bucket, const Error& error) {
    if (result_.failures++ == 0)
      log(Level::warning, "api", "applying lifecycle rules failed for part of a bucket",
          {{"bucket", bucket}, {"why", error.message}});
  }

  Objects& objects_;
  const Instant now_;
  LifecycleResult result_;
};

}  // namespace

std::vector<LifecycleRule> rules_in(const s3::BucketLifecycleConfiguration& lifecycle) {
  std::vector<LifecycleRule> rules;
  if (!lifecycle.rules) return rules;
  for (const auto& from : *lifecycle.rules) {
    if (from.status.value_or("") != "Enabled") continue;
    LifecycleRule rule;
    rule.id = from.id.value_or("");
    rule.prefix = from.prefix.value_or("");
    if (from.filter) {
      copy_predicates(rule, *from.filter);
      if (from.filter->tag) add_tag(rule, *from.filter->tag);
      if (from.filter->and_) {
        copy_predicates(rule, *from.filter->and_);
        if (from.filter->and_->tags)
          for (const auto& tag : *from.filter->and_->tags) add_tag(rule, tag);
      }
    }
    if (from.expiration) {
      rule.expires_after_days = from.expiration->days;
      rule.expires_on = from.expiration->date;
    }
    if (from.abort_incomplete_multipart_upload)
      rule.aborts_after_days = from.abort_incomplete_multipart_upload->days_after_initiation;
    if (rule.expires_after_days || rule.expires_on || rule.aborts_after_days)
      rules.push_back(std::move(rule));
  }
  return rules;
}

Instant due_after(Instant from, int64_t days) {
  return std::chrono::ceil<std::chrono::days>(from + std::chrono::days(std::min(days, kDaysMax)));
}

bool expires(const LifecycleRule& rule, const objects::ObjectInfo& object, Instant now) {
  for (const auto& [key, value] : rule.tags) {
    const auto found = object.tags.find(key);
    if (found == object.tags.end() || found->second != value) return false;
  }
  return is_due(rule, object, now);
}

bool aborts(const LifecycleRule& rule, const objects::UploadInfo& upload, Instant now) {
  return rule.aborts_after_days && upload.key.starts_with(rule.prefix) &&
         now >= due_after(upload.started, *rule.aborts_after_days);
}

LifecycleResult apply_lifecycle(Objects& objects, const BucketSettings& settings, Instant now,
                                const std::function<bool()>& stop) {
  Pass pass(objects, now);
  const shapes::Shape& shape = *s3::PutBucketLifecycleConfiguration::shape().input->payload->shape;
  for (const std::string& bucket : settings.buckets_with(Setting::lifecycle)) {
    // If the rules were changed or deleted meanwhile, the old ones remove nothing more.
    const auto record = settings.find(bucket, Setting::lifecycle);
    const auto must_stop = [&] {
      return stop() || settings.find(bucket, Setting::lifecycle) != record;
    };
    s3::BucketLifecycleConfiguration lifecycle;
    if (must_stop() || !settings.read(bucket, Setting::lifecycle, shape, &lifecycle)) continue;
    pass.apply(bucket, rules_in(lifecycle), must_stop);
  }
  return pass.result();
}

}  // namespace trainyard::api::s3
