#include "control/image_resolver.hpp"

#include <utility>

#include "base/thread_safety.hpp"

namespace trainyard::control {
namespace {

// Names come from users. Beyond this number (about a megabyte) all are removed, and resolved again.
constexpr size_t kNamesMax = 1'000;

}  // namespace

Result<std::shared_ptr<const ResolvedImage>> ImageResolver::resolve(const std::string& name) {
  {
    const MutexLock lock(mutex_);
    if (const auto found = resolved_.find(name); found != resolved_.end()) return found->second;
  }
  const std::string* key = domain::find_image_key(images_, name);
  auto resolved = std::make_shared<const ResolvedImage>(ResolvedImage{
      key ? images_.at(*key) : TRY(domain::resolve_image(images_, name)), key != nullptr});
  const MutexLock lock(mutex_);
  if (resolved_.size() >= kNamesMax) resolved_.clear();
  return resolved_.insert_or_assign(name, std::move(resolved)).first->second;
}

}  // namespace trainyard::control
