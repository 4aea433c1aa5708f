// Implements the interface Kubernetes by the REST API of an API server, over HTTPS.
//
// A token file is read again for each request, since Kubernetes renews the tokens of service
// accounts.
//
// Threads and errors: as kubernetes.hpp.
#pragma once

#include <memory>
#include <string>

#include "launch/kubernetes/kubeconfig.hpp"
#include "launch/kubernetes/kubernetes.hpp"
#include "launch/rest_request.hpp"

namespace trainyard::launch {

// Makes a client for one namespace, and for the objects with the mark of one server. Each resource
// has its own connection.
std::unique_ptr<Kubernetes> kubernetes_by_rest(KubernetesAccess access,
                                               const std::string& name_space, std::string mark,
                                               const OpenSendRest& open, ReadFile read_file);

}  // namespace trainyard::launch
