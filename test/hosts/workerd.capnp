# The application worker.mjs as of today, and as of a date without FinalizationRegistry; the recipe of the examples.
using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "today", worker = .today),
    (name = "early", worker = .early),
    (name = "recipe", worker = .recipe),
  ],
  sockets = [
    (name = "today", address = "127.0.0.1:0", http = (), service = "today"),
    (name = "early", address = "127.0.0.1:0", http = (), service = "early"),
    (name = "recipe", address = "127.0.0.1:0", http = (), service = "recipe"),
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

const recipe :Workerd.Worker = (
  modules = [
    (name = "recipe.mjs", esModule = embed "recipe.mjs"),
    (name = "./rollgate.wasm", wasm = embed "rollgate.wasm"),
  ],
  compatibilityDate = "2026-11-01",
);

const modules :List(Workerd.Worker.Module) = [
  (name = "worker.mjs", esModule = embed "worker.mjs"),
  (name = "./rollgate.wasm", wasm = embed "rollgate.wasm"),
];

const namespaces :List(Workerd.Worker.DurableObjectNamespace) =
  [(className = "Room", uniqueKey = "room")];

const bindings :List(Workerd.Worker.Binding) = [(name = "ROOMS", durableObjectNamespace = "Room")];
