// Lists all objects of a resource, with one request for each page.
//
// Threads: as Kubernetes::list(). Errors: those of kubernetes.hpp; corrupt; exhausted (too many
// objects or pages).
#pragma once

#include <map>
#include <string>

#include "launch/kubernetes/answers.hpp"
#include "launch/kubernetes/watched_objects.hpp"

namespace trainyard::launch {

template <class T>
struct KubernetesList {
  std::map<std::string, T> objects;  // by KubernetesIdentity::name
  std::string version;               // a watch after it shows all later changes
};

template <class T>
Result<KubernetesList<T>> list_objects(Kubernetes& kubernetes, const std::string& mark) {
  constexpr KubernetesResource resource = kResourceOf<T>;
  const size_t pages_max = kubernetes_objects_max(resource) / kKubernetesPageItems + 1;
  const std::string doing = "listing " + std::string(describe(resource));
  KubernetesList<T> list;
  std::string next;
  for (size_t number = 0; number < pages_max; ++number) {
    const std::string body = TRY(kubernetes.list(resource, next).in(doing));
    auto page = TRY(read_page<T>(body, mark).in(doing));
    // All pages show the same version.
    if (list.version.empty()) list.version = page.version;
    for (auto& [name, object] : page.objects)
      list.objects.insert_or_assign(std::move(name), std::move(object));
    TRY(check_object_count(resource, list.objects.size()));
    next = std::move(page.next);
    if (next.empty()) return list;
  }
  return exhausted(doing + ": the list has more than " + std::to_string(pages_max) + " pages");
}

}  // namespace trainyard::launch
