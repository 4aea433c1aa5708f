// TestServer runs the API on real logs and metrics in a temporary directory, and on control and
// objects in memory. It signs requests and passes them to the handler like the server.
//
//   struct World : TestServer { World() { open(); } };
//
// Threads: confined to the test's thread.
#pragma once

#include <gtest/gtest.h>

#include "audit/audit.hpp"
#include "dispatch/api.hpp"
#include "dispatch/testing/in_memory.hpp"
#include "objects/memory.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::api {

struct TestServer {
  static constexpr const char* kAccount = "123456789012";

  TestClock clock{in_memory::kStart};
  SeededRandom random{7};
  os::TemporaryDirectory directory;
  in_memory::PlainControl control{clock};
  std::unique_ptr<observe::Logs> logs = *observe::open_logs(directory.path() + "/logs", clock);
  std::unique_ptr<observe::Metrics> metrics = *observe::open_metrics(directory.path() + "/metrics");
  std::unique_ptr<objects::Objects> objects = objects::make_memory(clock, random);
  Settings settings{.account = kAccount,
                    .keys = {{"AKIAOWNER", "owner-secret"}},
                    .temporary_key_secret = std::string(32, 's')};
  Services services{control, *logs, *metrics, *objects, clock, random};
  std::unique_ptr<net::Handler> api;

  // Makes the handler with the current settings.
  void open(observe::AuditLog* audit = nullptr) {
    services.server_status = [] { return ServerStatus(); };
    api = make_api(settings, services, audit);
  }

  std::shared_ptr<in_memory::Reply> send(net::Request request) {
    request.peer = "192.0.2.7:5000";
    return in_memory::send(*api, std::move(request));
  }
  in_memory::Reply s3(const std::string& method, const std::string& target,
                      const std::string& body = "", const in_memory::Signing& by = {},
                      const signing::HeaderList& headers = {}) {
    return *send(in_memory::signed_request(method, target, headers, body, "s3", clock.now(), by));
  }
  in_memory::Reply json(const std::string& target, const std::string& body,
                        const std::string& service = "sagemaker", const in_memory::Signing& by = {},
                        signing::HeaderList headers = {}) {
    headers.emplace_back("X-Amz-Target", target);
    headers.emplace_back("Content-Type", "application/x-amz-json-1.1");
    return *send(in_memory::signed_request("POST", "/", headers, body, service, clock.now(), by));
  }
  in_memory::Reply form(const std::string& body, const std::string& service = "sts",
                        const in_memory::Signing& by = {}, signing::HeaderList headers = {}) {
    headers.emplace_back("Content-Type", "application/x-www-form-urlencoded; charset=utf-8");
    return *send(in_memory::signed_request("POST", "/", headers, body, service, clock.now(), by));
  }
  in_memory::Reply batch(const std::string& path, const std::string& body,
                         const in_memory::Signing& by = {}) {
    return *send(in_memory::signed_request("POST", "/v1/" + path,
                                           {{"Content-Type", "application/json"}}, body, "batch",
                                           clock.now(), by));
  }
};

}  // namespace trainyard::api
