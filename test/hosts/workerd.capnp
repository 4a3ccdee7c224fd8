# The application worker.mjs as of today, and as of a date without FinalizationRegistry.
using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [(name = "today", worker = .today), (name = "early", worker = .early)],
  sockets = [
    (name = "today", address = "127.0.0.1:0", http = (), service = "today"),
    (name = "early", address = "127.0.0.1:0", http = (), service = "early"),
  ],
);

const today :Workerd.Worker = (
  modules = .modules,
  compatibilityDate = "2026-11-01",
  durableObjectNamespaces = .namespaces,
  durableObjectStorage = (inMemory = void),
  bindings = .bindings,
);

const early :Workerd.Worker = (
  modules = .modules,
  compatibilityDate = "2023-01-01",
  durableObjectNamespaces = .namespaces,
  durableObjectStorage = (inMemory = void),
  bindings = .bindings,
);

const modules :List(Workerd.Worker.Module) = [
  (name = "worker.mjs", esModule = embed "worker.mjs"),
  (name = "./rollgate.wasm", wasm = embed "rollgate.wasm"),
];

const namespaces :List(Workerd.Worker.DurableObjectNamespace) =
  [(className = "Room", uniqueKey = "room")];

const bindings :List(Workerd.Worker.Binding) = [(name = "ROOMS", durableObjectNamespace = "Room")];
