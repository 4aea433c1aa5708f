// Decodes the answers of an API server: lists of Jobs, pods and nodes, single objects, and errors.
//
// Lists have pages. Of an object only the used members are kept; items without the labels of this
// server's gangs are left out, numbers are limited, and texts shortened.
//
// Threads: pure. Errors: corrupt (not an answer of Kubernetes), and those of kubernetes.hpp from
// check_kubernetes_answer().
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "launch/kubernetes/kubernetes.hpp"

namespace trainyard::launch {

inline constexpr size_t kKubernetesTextBytesMax = 300;
// Versions have 20 digits at most; they are opaque.
inline constexpr size_t kKubernetesVersionBytesMax = 128;

// The members that identify an object and its state.
struct KubernetesIdentity {
  std::string name;  // pods of others have their namespace: "default/web-0"
  std::string uid, version;
};

template <class T>
struct KubernetesPage {
  std::vector<std::pair<std::string, T>> objects;  // by KubernetesIdentity::name
  std::string next;                                // the token of the next page; "": the last one
  std::string version;                             // of the list
};

// The functions below exist for each type of objects (kubernetes.hpp, KubernetesResource). `mark`:
// the mark of this server.
template <class T>
Result<KubernetesPage<T>> read_page(std::string_view body, std::string_view mark);
// Returns what is used of an object; nullopt: nothing.
template <class T>
std::optional<T> read_object(const Json& object, std::string_view mark);
template <>
std::optional<KubernetesJob> read_object(const Json& object, std::string_view mark);
template <>
std::optional<KubernetesPod> read_object(const Json& object, std::string_view mark);
template <>
std::optional<KubernetesNode> read_object(const Json& object, std::string_view mark);
template <>
std::optional<KubernetesUse> read_object(const Json& object, std::string_view mark);
template <>
std::optional<KubernetesWorkload> read_object(const Json& object, std::string_view mark);
// Returns the identity of an object of type T. Errors: corrupt.
template <class T>
Result<KubernetesIdentity> read_identity(const Json& object);

// Returns the version of Kueue's API to use, from the API server's description of Kueue's group.
// Errors: corrupt; not_found (none that is known here).
Result<std::string> read_kueue_version(std::string_view body);

// Reads the answer to a request that creates, changes or deletes a Job. Errors: corrupt, also for a
// Job that is not this server's.
Result<KubernetesJob> read_job_answer(std::string_view body, std::string_view mark);

// Returns the latest one of a list of events: "Reason: message"; "": there is none. Errors:
// corrupt.
Result<std::string> read_latest_event(std::string_view body);

// Adds amounts up to a limit that no sum of clusters reaches.
void add_amounts(KubernetesAmounts& sum, const KubernetesAmounts& more);
// Raises each amount to the other's, if that is larger.
void raise_to(KubernetesAmounts& largest, const KubernetesAmounts& other);

Result<void> check_kubernetes_answer(int status, std::string_view body);

// Returns a quantity in thousandths: "1500m" is 1500, "2" is 2000, "1Ki" is 1024000. Errors:
// invalid.
Result<int64_t> parse_quantity_milli(std::string_view text);

// Parses a Job's list of indexes, "0,2-4". Leaves out indexes from `hosts` on. Errors: corrupt.
Result<std::set<domain::HostIndex>> parse_indexes(std::string_view text, uint32_t hosts);

}  // namespace trainyard::launch
