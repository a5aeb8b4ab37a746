// What pagecheck.py asks about the page that is open.  Each function returns faults as lines; nothing is kept in the page.
const shown = element => element.checkVisibility({opacityProperty: true, visibilityProperty: true}) && inside(element.getBoundingClientRect());
// Somewhere on the page, and more than the dot in which text for screen readers only is kept.
const inside = box => box.width > 1 && box.height > 1 && box.right + scrollX > 0 && box.bottom + scrollY > 0;
const all = css => [...document.querySelectorAll(css)];
const text = element => element.textContent.replace(/\s+/g, ' ').trim();
const CONTROLS = 'a[href],button,input:not([type=hidden]),select,textarea,summary,[contenteditable],[tabindex],'
  + '[role=button],[role=link],[role=checkbox],[role=radio],[role=switch],[role=tab],[role=menuitem],[role=option]';

function call(element) {
  const name = element.localName + (element.id && '#' + element.id)
    + [...element.classList].map(one => '.' + one).join('');
  const said = ['name', 'href', 'type', 'role', 'for'].filter(what => element.hasAttribute(what))
    .map(what => `[${what}=${element.getAttribute(what).slice(0, 60)}]`).join('');
  return `<${name}${said}> ${text(element).slice(0, 40)}`.trim();
}

// What moves or fades is looked at as it will be in the end; what never ends, as it is.
function settle() {
  document.getAnimations().filter(one => one.effect.getComputedTiming().endTime !== Infinity).forEach(one => one.finish());
}

// ---- structure

function fields() {
  const named = element => [...element.labels || []].some(text) || element.title.trim() || (element.ariaLabel || '').trim()
    || (element.getAttribute('aria-labelledby') || '').split(/\s+/).some(id => id && document.getElementById(id) && text(document.getElementById(id)));
  return all('input,select,textarea').filter(one => !['hidden', 'submit', 'reset', 'button', 'image'].includes(one.type))
    .filter(one => one.checkVisibility() && !named(one)).map(one => `no label: ${call(one)}`);
}

function images() {
  return all('img:not([alt]),input[type=image]:not([alt]),area[href]:not([alt])').map(one => `no alt: ${call(one)}`)
    .concat(all('svg').filter(one => shown(one) && !one.closest('[aria-hidden=true]') && one.getAttribute('role') !== 'img')
      .map(one => `neither role=img nor aria-hidden: ${call(one)}`))
    .concat(all('img[alt]').filter(one => /\.(png|jpe?g|svg|gif|webp)$/i.test(one.alt)).map(one => `alt is a file's name: ${call(one)}`));
}

function headings() {
  const found = all('h1,h2,h3,h4,h5,h6').filter(one => one.checkVisibility()), firsts = found.filter(one => one.localName === 'h1').length;
  const level = one => Number(one.localName[1]);
  return (firsts === 1 ? [] : [`${firsts} h1`])
    .concat(found.filter(one => !text(one) && !one.querySelector('[alt],[aria-label]')).map(one => `empty: ${call(one)}`))
    .concat(found.filter((one, i) => i ? level(one) > level(found[i - 1]) + 1 : level(one) > 1).map(one => `a level is left out before ${call(one)}`));
}

function language() {
  const lang = document.documentElement.lang, viewport = document.querySelector('meta[name=viewport]');
  return [[/^[a-z]{2,3}(-[A-Za-z0-9]+)*$/.test(lang), `html has lang=${JSON.stringify(lang)}`], [document.title.trim(), 'no title'],
    [document.compatMode === 'CSS1Compat', 'no <!doctype html>'], [viewport, 'no <meta name=viewport>'],
    [!viewport || !/user-scalable\s*=\s*(no|0)|maximum-scale\s*=\s*[01](\.|,|\s|$)/.test(viewport.content), 'the viewport forbids to enlarge it'],
    [!document.querySelector('meta[http-equiv=refresh i]'), 'it reloads by itself']].filter(([good]) => !good).map(([, fault]) => fault);
}

function ids() {
  const seen = new Set(), twice = all('[id]').filter(one => seen.has(one.id) || !seen.add(one.id));
  const points = ['for', 'list', 'form', 'aria-labelledby', 'aria-describedby', 'aria-controls', 'aria-owns', 'aria-errormessage', 'headers'];
  return twice.map(one => `the id is there already: ${call(one)}`)
    .concat(points.flatMap(what => all(`[${what}]`).flatMap(one => one.getAttribute(what).split(/\s+/)
      .filter(id => !seen.has(id)).map(id => `${what}=${id} names nothing: ${call(one)}`))))
    .concat(all('a[href^="#"]').filter(one => one.hash.length > 1 && !seen.has(decodeURIComponent(one.hash.slice(1)))).map(one => `leads nowhere: ${call(one)}`));
}

function tables() {
  return all('table:not([role=presentation],[role=none])').flatMap(table => {
    const heads = [...table.querySelectorAll('th')];
    return (heads.length ? [] : [`no th: ${call(table)}`])
      .concat(heads.filter(one => !text(one) && !one.ariaLabel).map(one => `an empty th: ${call(table)}`))
      .concat(heads.filter(one => !one.scope && !one.closest('thead')).map(one => `outside of thead and without scope: ${call(one)}`))
      .concat(table.caption || table.ariaLabel || table.getAttribute('aria-labelledby') ? [] : [`no caption: ${call(table)}`]);
  });
}

function lists() {
  return all('li').filter(one => !one.parentElement.matches('ul,ol,menu,[role=list]')).map(one => `in no list: ${call(one)}`)
    .concat(all('ul,ol,menu').flatMap(list => [...list.children].filter(one => !one.matches('li,script,template')).map(one => `not an li: ${call(one)}`)))
    .concat(all('dt,dd').filter(one => !one.closest('dl')).map(one => `in no dl: ${call(one)}`));
}

function landmarks() {
  const main = all('main,[role=main]').filter(one => one.checkVisibility());
  const places = 'main,nav,header,footer,aside,dialog,[role=main],[role=navigation],[role=banner],[role=contentinfo],[role=region],[role=alert],[role=status]';
  const navs = all('nav,[role=navigation]').filter(one => one.checkVisibility());
  const name = one => one.ariaLabel || (document.getElementById(one.getAttribute('aria-labelledby')) || {}).textContent || '';
  const outside = texts().map(node => node.parentElement).filter(one => !one.closest(places) && !one.closest('a[href^="#"]'));
  return (main.length === 1 ? [] : [`${main.length} main`])
    .concat([...new Set(outside)].map(one => `outside of main, nav, header, footer and aside: ${call(one)}`))
    .concat(navs.length > 1 && new Set(navs.map(name)).size < navs.length ? ['several nav with the same name, or none'] : []);
}

function roles() {
  const reached = 'a[href],button:enabled,input:enabled,select:enabled,textarea:enabled,summary,[tabindex]:not([tabindex^="-"])';
  return all('[aria-hidden=true]').filter(one => one.matches(reached) || one.querySelector(reached)).map(one => `hidden, but the keyboard goes there: ${call(one)}`)
    .concat(all('[role=button],[role=link],[role=checkbox],[role=switch],[role=tab],[onclick]')
      .filter(one => one.tabIndex < 0 && !one.hasAttribute('tabindex') && !one.disabled).map(one => `the keyboard does not get to it: ${call(one)}`))
    .concat(all(CONTROLS.split(',').map(one => `:is(a[href],button) ${one}`).join(',')).map(one => `inside of another control: ${call(one)}`))
    .concat(all('[tabindex]').filter(one => one.tabIndex > 0).map(one => `tabindex above 0: ${call(one)}`))
    .concat(all('fieldset').filter(one => !one.querySelector('legend') && !one.ariaLabel && !one.getAttribute('aria-labelledby')).map(one => `no legend: ${call(one)}`));
}

// ---- colours

const canvas = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true}), colours = new Map();

// [red, green, blue, opacity] of whatever CSS calls a colour; the first three 0 to 255.
function colour(css) {
  if (!colours.has(css)) {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = css;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    colours.set(css, [r, g, b, a / 255]);
  }
  return colours.get(css);
}

const over = (top, below) => [0, 1, 2].map(i => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);

function luminance(one) {
  const [r, g, b] = one.slice(0, 3).map(part => (part /= 255) <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function ratio(one, other) {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

// What is behind everything: the browser's own colour, which depends on the schemes that the page says it knows.
function paper() {
  const sheet = document.createElement('i');
  sheet.style.backgroundColor = 'Canvas';
  document.documentElement.append(sheet);
  const css = getComputedStyle(sheet).backgroundColor;
  sheet.remove();
  return colour(css);
}

// The colours that may be behind an element's text: one, or those of a gradient; null where a picture is.
function grounds(element) {
  const layers = [];
  for (let one = element; one; one = one.parentElement) {
    const style = getComputedStyle(one), image = style.backgroundImage;
    if (image.includes('url('))
      return null;
    if (image !== 'none')
      layers.push(image.match(/[a-z]+\([^()]*\)|#[0-9a-f]+/gi).map(colour));
    layers.push([colour(style.backgroundColor)]);
    if (layers.at(-1)[0][3] === 1)
      break;
  }
  let found = [paper()];
  for (const layer of layers.reverse())
    found = layer.flatMap(top => found.map(below => over(top, below)));
  return found;
}

function opacity(element) {
  let all = 1;
  for (let one = element; one; one = one.parentElement)
    all *= Number(getComputedStyle(one).opacity);
  return all;
}

// Text nodes that can be seen.
function texts() {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [], range = document.createRange();
  while (walker.nextNode()) {
    const node = walker.currentNode, parent = node.parentElement;
    if (!node.data.trim() || parent.closest('script,style,noscript,template,option') || !parent.checkVisibility({visibilityProperty: true}))
      continue;
    range.selectNodeContents(node);
    const clipped = [...ancestors(parent)].some(one => ['hidden', 'clip'].includes(getComputedStyle(one).overflowX)
      && !inside(one.getBoundingClientRect()));
    if (inside(range.getBoundingClientRect()) && !clipped)
      found.push(node);
  }
  return found;
}

function* ancestors(element) {
  for (let one = element; one; one = one.parentElement)
    yield one;
}

function legible(element, css, style, what) {
  const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
  const behind = grounds(element), ink = colour(css), least = large ? 3 : 4.5;
  if (behind === null)
    return [`${what} is on a picture, where it cannot be told: ${call(element)}`];
  const worst = Math.min(...behind.map(ground => ratio(over([ink[0], ink[1], ink[2], ink[3] * opacity(element)], ground), ground)));
  return worst >= least - 0.005 ? [] : [`${what} ${worst.toFixed(2)}:1 instead of ${least}: ${call(element)}`];
}

function contrast() {
  settle();
  const asleep = element => element.closest(':disabled,[aria-disabled=true]') || [...element.labels || []].some(asleep);
  const found = new Set([...new Set(texts().map(node => node.parentElement))].filter(one => !asleep(one)).flatMap(one => {
    const style = getComputedStyle(one);
    return legible(one, one.namespaceURI.endsWith('svg') ? style.fill : style.color, style, 'text');
  }));
  for (const field of all('input,select,textarea').filter(one => shown(one) && !asleep(one) && !['checkbox', 'radio', 'range', 'color'].includes(one.type))) {
    const style = getComputedStyle(field);
    legible(field, style.color, style, 'what is typed').forEach(fault => found.add(fault));
    if (field.placeholder)
      legible(field, getComputedStyle(field, '::placeholder').color, style, 'placeholder').forEach(fault => found.add(fault));
    if (!['submit', 'button', 'reset', 'image', 'file'].includes(field.type))
      edge(field, style).forEach(fault => found.add(fault));
  }
  return [...found];
}

// Where a field is can be seen by a border or a background of 3:1 to what is around it.
function edge(field, style) {
  const around = grounds(field.parentElement), own = grounds(field);
  if (around === null || own === null)
    return [];
  const border = ['Bottom', 'Top'].map(side => style[`border${side}Style`] !== 'none' && parseFloat(style[`border${side}Width`]) > 0
    ? ratio(over(colour(style[`border${side}Color`]), around[0]), around[0]) : 1);
  const best = Math.max(...border, ratio(own[0], around[0]));
  return best >= 2.995 ? [] : [`the field's edge ${best.toFixed(2)}:1 instead of 3: ${call(field)}`];
}

// ---- room

// Without the links within a sentence, which are as high as its lines.
function targets(least, css) {
  settle();
  const inline = one => one.localName === 'a' && getComputedStyle(one).display === 'inline'
    && one.closest('p,li,td,dd,small,span,label,figcaption') && text(one.closest('p,li,td,dd,small,span,label,figcaption')).length > text(one).length;
  return all(css || CONTROLS).filter(one => !(one.matches('[tabindex^="-"]') && !one.matches('a,button,input,select,textarea,summary')) && !inline(one))
    .flatMap(one => {
      const boxes = [one, ...[...one.labels || []].flatMap(label => [label, ...label.querySelectorAll('*')])].filter(shown).map(part => part.getBoundingClientRect());
      const joined = boxes.length && [Math.max(...boxes.map(box => box.right)) - Math.min(...boxes.map(box => box.left)),
        Math.max(...boxes.map(box => box.bottom)) - Math.min(...boxes.map(box => box.top))];
      const [width, height] = ['checkbox', 'radio'].includes(one.type) || !boxes.length ? joined || [least, least]
        : [one.getBoundingClientRect().width, one.getBoundingClientRect().height];
      return !shown(one) && !['checkbox', 'radio'].includes(one.type) || (width >= least - 0.5 && height >= least - 0.5) ? []
        : [`${Math.round(width)}×${Math.round(height)} px instead of ${least}: ${call(one)}`];
    });
}

function width() {
  const page = document.documentElement, room = page.clientWidth;
  if (page.scrollWidth <= room && document.body.scrollWidth <= room)
    return [];
  const rolls = one => [...ancestors(one.parentElement)].some(up => up !== document.body && up !== page && getComputedStyle(up).overflowX !== 'visible');
  const wide = all('body *').filter(one => one.getBoundingClientRect().right > room + 0.5 && !rolls(one)).map(call);
  return [`${Math.max(page.scrollWidth, document.body.scrollWidth)} px wide where ${room} are there: ${wide.slice(0, 3).join(', ')}`];
}

// ---- the keyboard

const reachable = () => {
  const groups = new Set();
  return all('a[href],button,input:not([type=hidden]),select,textarea,summary,[contenteditable],[tabindex],audio[controls],video[controls]').filter(one => {
    const group = one.type === 'radio' && one.name && `${one.name} ${[...document.forms].indexOf(one.form)}`;
    if (one.tabIndex < 0 || one.disabled || one.closest('[inert]') || !one.checkVisibility({visibilityProperty: true})
        || (group && groups.has(group)) || (one.localName === 'summary' && one !== one.parentElement.querySelector('summary')))
      return false;
    if (group)
      groups.add(group);
    return true;
  });
};
const LOOK = ['outlineStyle', 'outlineWidth', 'outlineColor', 'boxShadow', 'borderTopColor', 'borderBottomColor', 'borderBottomWidth', 'borderTopWidth',
  'backgroundColor', 'color', 'textDecorationLine', 'textDecorationColor', 'textDecorationThickness'];
const looks = element => [element, element.nextElementSibling, element.parentElement, ...element.labels || []].filter(one => one && one !== document.body)
  .map(one => [one, Object.fromEntries(LOOK.map(what => [what, getComputedStyle(one)[what]]))]);

// Before the first Tab: what can be reached, and how it looks without the focus.  Returns their names.
function walk_begin() {
  document.activeElement.blur();
  const kept = document.body.getAttribute('tabindex');
  document.body.tabIndex = -1;
  document.body.focus({preventScroll: true});
  kept === null ? document.body.removeAttribute('tabindex') : document.body.setAttribute('tabindex', kept);
  scrollTo(0, 0);
  const found = reachable();
  window.hanjiWalk = {found, looks: found.map(looks)};
  return found.map(call);
}

// After a Tab: [its number (-1: nothing of these), what is wrong with it].
function walk_step() {
  const {found, looks: before} = window.hanjiWalk, here = document.activeElement;
  const at = found.findIndex(one => one === here || (one.type === 'radio' && one.name && one.name === here.name && one.form === here.form));
  if (at < 0)
    return [here === document.body || here === document.documentElement ? -1 : -2, [], call(here)];
  settle();
  const now = looks(here), was = here === found[at] ? before[at] : now.map(([one]) => [one, {}]);
  const marked = now.some(([one, look], i) => was[i] && was[i][0] === one && mark(one, was[i][1], look));
  const box = here.getBoundingClientRect(), spots = [[0.5, 0.5], [0.1, 0.5], [0.9, 0.5], [0.5, 0.1], [0.5, 0.9]];
  const hidden = box.width > 2 && !spots.some(([x, y]) => {
    const top = document.elementFromPoint(box.left + box.width * x, box.top + box.height * y);
    return top && (top === here || here.contains(top) || top.contains(here) || [...here.labels || []].some(label => label.contains(top)));
  });
  return [at, (marked ? [] : [`the focus cannot be seen on ${call(here)}`]).concat(hidden ? [`the focus is behind something or off the page: ${call(here)}`] : []), call(here)];
}

function mark(element, was, now) {
  const around = (grounds(element.parentElement || element) || [[128, 128, 128, 1]])[0], own = (grounds(element) || [around])[0];
  const stands = css => Math.max(ratio(over(colour(css), around), around), ratio(over(colour(css), own), own)) >= 2.995;
  if (now.outlineStyle === 'auto')
    return true;
  if (now.outlineStyle !== 'none' && parseFloat(now.outlineWidth) >= 1 && stands(now.outlineColor)
      && LOOK.slice(0, 3).some(what => was[what] !== now[what]))
    return true;
  if (now.boxShadow !== was.boxShadow && (now.boxShadow.match(/[a-z]+\([^()]*\)/g) || []).some(stands))
    return true;
  if (was.textDecorationLine && now.textDecorationLine !== was.textDecorationLine && now.textDecorationLine !== 'none')
    return true;
  return ['backgroundColor', 'borderBottomColor'].some(what => was[what] && was[what] !== now[what]
    && ratio(over(colour(was[what]), around), over(colour(now[what]), around)) >= 2.995);
}

// How dark the page itself is: luminance of what is behind everything.
function ground() {
  return luminance((grounds(document.body) || [[255, 255, 255, 1]])[0]);
}
