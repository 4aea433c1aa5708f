// ImageResolver resolves the names of images, once per name: at the admission of the first job that
// uses it. Later steps of a job (the note of its attempt, the orders of its hosts) get the same
// image.
//
// Images are kept only in memory, since they have paths of this machine: after a restart names are
// resolved by the current config.
//
// Threads: callable from anywhere. Private to this module.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "base/thread_safety.hpp"
#include "domain/image.hpp"

namespace trainyard::control {

struct ResolvedImage {
  domain::Image image;
  bool configured = false;  // the name matches a key of the config's images
};

class ImageResolver {
 public:
  // Lifetime: `images` outlives it.
  explicit ImageResolver(const std::map<std::string, domain::Image>& images) : images_(images) {}

  // Errors: invalid, with the accepted forms; a failed name is resolved again at the next call.
  Result<std::shared_ptr<const ResolvedImage>> resolve(const std::string& name);

 private:
  const std::map<std::string, domain::Image>& images_;
  Mutex mutex_;
  // By name.
  std::map<std::string, std::shared_ptr<const ResolvedImage>> resolved_ GUARDED_BY(mutex_);
};

}  // namespace trainyard::control
