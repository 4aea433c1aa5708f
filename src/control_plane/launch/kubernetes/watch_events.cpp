#include "launch/kubernetes/watch_events.hpp"

#include "base/text.hpp"
#include "launch/kubernetes/json_members.hpp"

namespace trainyard::launch {
namespace {

// Returns the error of the Status in an ERROR event.
Error error_of_event(const Json& status) {
  const Json& code = json_member(status, "code");
  // Only statuses of errors may be in such an event.
  const int64_t number = code.is_number_integer() ? code.get<int64_t>() : 0;
  const int status_code = number >= 400 && number < 600 ? int(number) : 500;
  return check_kubernetes_answer(status_code, dump(status)).error();
}

Result<std::string> read_bookmark(const Json& object) {
  std::string version = json_text(json_member(object, "metadata"), "resourceVersion");
  if (version.empty() || version.size() > kKubernetesVersionBytesMax)
    return corrupt("a bookmark of Kubernetes has no valid resourceVersion");
  return version;
}

}  // namespace

template <class T>
Result<KubernetesEvent<T>> read_event(std::string_view line, std::string_view mark) {
  using Type = typename KubernetesEvent<T>::Type;
  const Json json = TRY(parse_json(line).in("reading an event of Kubernetes"));
  const std::string type = json_text(json, "type");
  const Json& object = json_member(json, "object");
  if (!object.is_object()) return corrupt("an event of Kubernetes has no object");
  KubernetesEvent<T> event;
  if (type == "ERROR") return error_of_event(object).in("the watch");
  if (type == "BOOKMARK") {
    event.identity.version = TRY(read_bookmark(object));
    return event;
  }
  if (type != "ADDED" && type != "MODIFIED" && type != "DELETED")
    return corrupt("Kubernetes sends an event of the unknown type '" + shorten(type, 40) + "'");
  event.type = type == "DELETED" ? Type::deleted : Type::changed;
  event.identity = TRY(read_identity<T>(object));
  event.object = read_object<T>(object, mark);
  return event;
}

template Result<KubernetesEvent<KubernetesJob>> read_event(std::string_view, std::string_view);
template Result<KubernetesEvent<KubernetesPod>> read_event(std::string_view, std::string_view);
template Result<KubernetesEvent<KubernetesNode>> read_event(std::string_view, std::string_view);
template Result<KubernetesEvent<KubernetesUse>> read_event(std::string_view, std::string_view);
template Result<KubernetesEvent<KubernetesWorkload>> read_event(std::string_view, std::string_view);

}  // namespace trainyard::launch
