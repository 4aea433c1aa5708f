// Decodes the lines of a watch: changes of objects, bookmarks and errors.
//
// Threads: pure. Errors: corrupt (not a line of a watch), and those of an ERROR event, which are
// those of an answer with its status: conflict with the detail `expired` for 410.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "launch/kubernetes/answers.hpp"

namespace trainyard::launch {

// A change of an object of type T (kubernetes.hpp, KubernetesResource).
template <class T>
struct KubernetesEvent {
  enum class Type {
    changed,   // it was created or changed
    deleted,   // it was deleted, or is no longer selected
    bookmark,  // nothing has changed up to this version; it has no object
  };
  Type type = Type::bookmark;
  KubernetesIdentity identity;  // a bookmark has a version only
  // Holds what is used of the object; of a deleted one: as it was last. nullopt: nothing is used.
  std::optional<T> object;
};

// `mark`: the mark of this server.
template <class T>
Result<KubernetesEvent<T>> read_event(std::string_view line, std::string_view mark);

}  // namespace trainyard::launch
