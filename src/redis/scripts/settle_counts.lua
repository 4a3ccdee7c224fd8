-- Settles an attempt in aligned windows, of which each has its count in `current`, and that of the
-- window before in `previous` if the algorithm keeps it.
for w = 1, window_count do
  local window = windows[w]
  local since = floor(at / window.interval) - floor(newest / window.interval)
  local counted = since == 0 and 'current' or since == -1 and 'previous'
  local count, change = window[counted], window.actual - window.cost
  if settled_of == generation and count and (count > 0 or change > 0) then
    window[counted], is_changed = max_of(0, min(count + change, LATEST - 1)), true
  end
end
