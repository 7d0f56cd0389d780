@0xb1d4c7e2f5a60813;
# What examples/demo.py serves and calls.

interface Calculator {
  evaluate @0 (expression :Text) -> (value :Value);
  # A number that need not be known yet.

  sum @1 (values :List(Value)) -> (value :Value);

  watch @2 (watcher :Watcher) -> ();
  # Tells the watcher of every evaluation from now on.
}

interface Value {
  read @0 () -> (number :Float64);
  times @1 (factor :Float64) -> (value :Value);
}

interface Watcher {
  evaluated @0 (expression :Text, number :Float64) -> ();
}
