// Makes variants of a waiting job for schedule::what_if: with a smaller gang, a smaller instance
// type, or in another queue.
#include <algorithm>
#include <functional>
#include <set>
#include <tuple>
#include <utility>

#include "batch/catalog.hpp"
#include "domain/instance_type.hpp"
#include "reconcile/schedule_view.hpp"

namespace trainyard::reconcile {

using namespace batch;
using namespace domain;

namespace {

constexpr size_t kTypesMax = 8;  // the sizes of a family
constexpr size_t kVariantQueuesMax = 4;
constexpr size_t kQueuesCheckedMax = 64;  // queues for which the caller's rights are checked

// Returns the sizes to try: one host fewer, three quarters, a half, a quarter, one host.
std::vector<uint32_t> smaller_counts(uint32_t hosts) {
  std::set<uint32_t, std::greater<>> counts;
  for (const uint32_t count : {hosts - 1, hosts * 3 / 4, hosts / 2, hosts / 4, uint32_t(1)})
    if (count > 0 && count < hosts) counts.insert(count);
  return {counts.begin(), counts.end()};
}

// Returns the family of a type: "ml.m5" for "ml.m5.large".
std::string_view family_of(std::string_view type) { return type.substr(0, type.rfind('.')); }

// Returns smaller types, with GPUs if it has GPUs: its family first, then the largest types.
std::vector<InstanceType> smaller_types(const std::string& name) {
  const auto own = find_instance_type(name);
  if (!own) return {};
  std::vector<InstanceType> smaller;
  for (const InstanceType& type : instance_types())
    if (is_for_training(type) && type.cpus <= own->cpus && type.memory_gib <= own->memory_gib &&
        type.gpus <= own->gpus && (type.gpus > 0) == (own->gpus > 0) &&
        (type.cpus < own->cpus || type.memory_gib < own->memory_gib || type.gpus < own->gpus))
      smaller.push_back(type);
  const auto order = [&](const InstanceType& type) {
    return std::tuple(family_of(type.name) != family_of(name), -int64_t(type.gpus),
                      -int64_t(type.cpus), -type.memory_gib);
  };
  std::ranges::stable_sort(smaller, {}, order);
  std::vector<InstanceType> chosen;
  for (const InstanceType& type : smaller)
    if (chosen.size() < kTypesMax && std::ranges::none_of(chosen, [&](const InstanceType& known) {
          return known.cpus == type.cpus && known.memory_gib == type.memory_gib &&
                 known.gpus == type.gpus;
        }))
      chosen.push_back(type);
  return chosen;
}

}  // namespace

void ScheduleView::add_variant(const Job& changed, schedule::Change change,
                               std::vector<schedule::Variant>& variants) {
  auto waiting = waiting_of(changed, {});
  if (waiting) variants.push_back({std::move(change), *std::move(waiting)});
}

// Returns false for jobs of containers: their nodes have roles, and their requests no instance
// types.
void ScheduleView::add_smaller(const Job& job, std::vector<schedule::Variant>& variants) {
  if (job.spec.contract != Contract::training || job.spec.groups.size() != 1) return;
  Job changed = job;
  changed.spec.preferences.clear();
  InstanceGroup& group = changed.spec.groups.front();
  const InstanceGroup own = group;
  for (const uint32_t count : smaller_counts(own.count)) {
    group.count = count;
    add_variant(
        changed,
        {.kind = schedule::ChangeKind::shrink_gang, .from = double(own.count), .to = double(count)},
        variants);
  }
  group = own;
  for (const InstanceType& type : smaller_types(own.instance_type)) {
    group.instance_type = type.name;
    add_variant(changed,
                {.kind = schedule::ChangeKind::change_type,
                 .name = std::string(type.name),
                 .share = {double(type.cpus), int64_t(type.memory_gib * double(1 << 30)),
                           int64_t(type.gpus)}},
                variants);
  }
}

void ScheduleView::add_queues(const Job& job, const MayUseQueue& may_use,
                              std::vector<schedule::Variant>& variants) {
  if (!catalog_ || !job.spec.queue) return;
  Job changed = job;
  size_t checked = 0, added = 0;
  for (const auto& [key, queue] : catalog_->queues) {
    if (key.region != job.key.region || key.name == job.spec.queue->name ||
        !check_fits_queue(*catalog_, queue, job.spec))
      continue;
    if (checked++ == kQueuesCheckedMax || added == kVariantQueuesMax) return;
    if (!may_use(key)) continue;
    changed.spec.queue->name = key.name;
    const size_t before = variants.size();
    add_variant(changed, {.kind = schedule::ChangeKind::change_queue, .name = key.name}, variants);
    added += variants.size() - before;
  }
}

std::vector<schedule::Variant> ScheduleView::variants(const Job& job, const MayUseQueue& may_use) {
  std::vector<schedule::Variant> variants;
  if (waiting_of(job, {})) {  // adds the job's limits before those of variants
    Job plain = job;
    plain.spec.request = Json();  // may be large
    add_smaller(plain, variants);
    add_queues(plain, may_use, variants);
  }
  subject_ = nullptr;
  return variants;
}

}  // namespace trainyard::reconcile
